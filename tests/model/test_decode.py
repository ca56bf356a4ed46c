"""The decoding model against numbers worked by hand and published shapes."""

import pytest

from labkit.model.decode import floor_table, layer_operations, shares


def by_name(batch=1, context=0):
    found = {}
    for operation in layer_operations(batch, context):
        found.setdefault(operation.name, operation)
    return found


@pytest.mark.parametrize(
    "name,n,k",  # the published (N, K) of one GPU of eight
    [
        ("QKV projection", 2304, 16384),
        ("output projection", 16384, 2048),
        ("gate and up projection", 13312, 16384),
        ("down projection", 16384, 6656),
    ],
)
@pytest.mark.parametrize("batch", [1, 32])
def test_products_have_the_published_shapes(name, n, k, batch):
    operation = by_name(batch)[name]
    assert operation.flops == 2 * batch * n * k
    assert operation.bytes == n * k + batch * k + 2 * batch * n


def test_fused_kernels_stand_at_their_byte_floors():
    found = by_name(batch=32)
    assert found["residual + RMSNorm"].bytes == 3_670_016  # 7 x 32 x 16384
    assert found["SwiGLU"].bytes == 1_064_960  # 5 x 32 x 6656


def test_weights_add_up_to_the_model():
    """126 layers on 8 GPUs: the layers of a model of 405e9 parameters, less its two embeddings of 128256."""
    weights = sum(o.bytes for o in layer_operations(1, 0) if "projection" in o.name)
    parameters = 126 * 8 * weights
    assert parameters == pytest.approx(405.85e9 - 2 * 128256 * 16384, rel=0.005)


def test_attention_reads_the_cache_once():
    short, long = (by_name(batch=3, context=c)["attention"] for c in (1000, 2000))
    assert long.bytes - short.bytes == 3 * 1000 * 2 * 128 * 2  # K and V, one head of 128, 2 bytes
    assert long.flops == 2 * short.flops == 3 * 2000 * 16 * 128 * 4


def test_floor_is_the_longer_of_two_times():
    table = floor_table(1, 0, terabytes=4.0, teraflops=1000.0)
    row = table[table["operation"] == "gate and up projection"].iloc[0]
    assert row["floor (us, modelled)"] == pytest.approx((13312 * 16384 + 16384 + 2 * 13312) / 4e6)
    assert row["bound by"] == "bytes"
    slow = floor_table(1, 0, terabytes=4.0, teraflops=0.001)
    assert set(slow[slow["operation"].str.contains("projection")]["bound by"]) == {"FLOPs"}


def test_shares_add_up_and_weights_lead():
    table = shares([1, 8, 32], 2048, 4.3, 2614.9)
    assert table.sum(axis=1).tolist() == pytest.approx([100, 100, 100])
    assert (table["MLP's GEMMs"] > 50).all()
    assert table["norms and SwiGLU"].is_monotonic_increasing


@pytest.mark.parametrize("batch,context", [(0, 10), (-1, 10), (1, -1)])
def test_impossible_sizes(batch, context):
    with pytest.raises(ValueError, match="must be at least"):
        layer_operations(batch, context)
