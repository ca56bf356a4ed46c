"""What counts would cost: counts and datasheet figures in, tables out. Floors, never forecasts."""
