// Retained memory. Requires `--expose-gc`.
import { setTimeout as sleep } from 'node:timers/promises'

async function heap() {
  await sleep(50)
  global.gc()
  global.gc()
  return process.memoryUsage().heapUsed
}

/** Bytes that `count` more objects retain, after 200 objects have created the shared state. */
export async function keptBytes(add, count) {
  await add(200)
  const before = await heap()
  await add(count)
  return (await heap()) - before
}
