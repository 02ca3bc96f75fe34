// What is kept in memory: needs `--expose-gc`.
import { setTimeout as sleep } from 'node:timers/promises'

async function heap() {
  await sleep(50)
  global.gc()
  global.gc()
  return process.memoryUsage().heapUsed
}

/** Bytes that `count` more things keep, once 200 of them have made whatever all of them share. */
export async function keptBytes(add, count) {
  await add(200)
  const before = await heap()
  await add(count)
  return (await heap()) - before
}
