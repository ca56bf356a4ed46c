"""Contrast of the text in a page: the WCAG ratio of each visible piece of text to what lies behind it."""

from __future__ import annotations

from playwright.sync_api import Locator

TEXT_RATIO = 4.5  # WCAG 2.2, success criterion 1.4.3, level AA, text of ordinary size


def contrasts(place: Locator) -> list[tuple[float, str]]:
    """(ratio, text) for each piece of visible text inside the elements of `place`, the lowest first."""
    found = place.evaluate_all(_MEASURE)
    return sorted((ratio, text) for ratio, text in found)


# Colours as the browser resolved them; a ground that is partly transparent is laid over what is below it.
# Luminance and ratio: WCAG 2.2, "relative luminance" and "contrast ratio".
_MEASURE = """roots => {
    const probe = document.createElement('canvas').getContext('2d', {willReadFrequently: true});
    const parse = text => {
        probe.clearRect(0, 0, 1, 1);
        probe.fillStyle = text;
        probe.fillRect(0, 0, 1, 1);
        const [r, g, b, a] = probe.getImageData(0, 0, 1, 1).data;
        return [r, g, b, a / 255];
    };
    const over = (top, under) => [0, 1, 2].map(k => top[k] * top[3] + under[k] * (1 - top[3])).concat(1);
    const ground = element => {
        if (!element) return [255, 255, 255, 1];
        const own = parse(getComputedStyle(element).backgroundColor);
        return own[3] === 1 ? own : over(own, ground(element.parentElement));
    };
    const luminance = colour => {
        const [r, g, b] = colour.slice(0, 3).map(v => v / 255)
            .map(v => v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
        return 0.2126 * r + 0.7152 * g + 0.0722 * b;
    };
    const found = [];
    for (const root of roots) {
        const walker = document.createTreeWalker(root, NodeFilter.SHOW_TEXT);
        while (walker.nextNode()) {
            const node = walker.currentNode, element = node.parentElement;
            if (!node.data.trim() || !element.checkVisibility() || element.closest('style, script')) continue;
            const behind = ground(element);
            const front = over(parse(getComputedStyle(element).color), behind);
            const [dark, light] = [luminance(behind), luminance(front)].sort((a, b) => a - b);
            found.push([(light + 0.05) / (dark + 0.05), node.data.trim().slice(0, 80)]);
        }
    }
    return found;
}"""
