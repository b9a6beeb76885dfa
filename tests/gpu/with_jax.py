"""JAX on a GPU: what XLA compiles, which asks the driver itself; prints what came out, in a fixed form."""

import hashlib
import os
import sys

os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
os.environ.setdefault("XLA_FLAGS", "--xla_gpu_deterministic_ops=true --xla_gpu_autotune_level=0")

import jax
import jax.numpy as jnp
import numpy as np


def digest(array):
    """Of its bytes."""
    return hashlib.sha256(np.asarray(array).tobytes()).hexdigest()[:16]


def main():
    """A few steps of descent, so often."""
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 20
    assert jax.devices()[0].platform == "gpu", jax.devices()
    keys = jax.random.split(jax.random.key(0), 3)
    inputs, wanted = jax.random.normal(keys[0], (64, 128)), jax.random.normal(keys[1], (64, 8))
    weights = jax.random.normal(keys[2], (128, 8)) * 0.1

    @jax.jit
    def step(weights):
        def loss(weights):
            return jnp.mean((jnp.tanh(inputs @ weights) - wanted) ** 2)

        return weights - 0.1 * jax.grad(loss)(weights)

    for _ in range(rounds):
        weights = step(weights)
    print("descends", digest(weights))
    print("sums", digest(jnp.cumsum(jnp.arange(1 << 16, dtype=jnp.float32))))
    print("end")


if __name__ == "__main__":
    main()
