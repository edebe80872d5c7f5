import asyncio

import pytest

from lamella.conversation.threads import run_in_own_thread


@pytest.mark.parametrize("raised", [StopIteration, KeyboardInterrupt, GeneratorExit])
def test_loop_ending_exception_in_thread_becomes_runtime_error(raised: type[BaseException]) -> None:
    def work() -> None:
        raise raised

    async def wait() -> str:
        with pytest.raises(RuntimeError) as caught:
            await run_in_own_thread(work, name="work")
        return str(caught.value)

    assert asyncio.run(wait()) == raised.__name__
