// A process that wakes due sessions. Its time is accelerated, its clock is skewed and jumps, and it may kill
// itself right before or after a store call.
import { createWaker } from 'statewright/fleet'
import { fileStore } from 'statewright/stores/file'
import { doomed, striker } from './faults.mjs'
import { createSkewedClock } from './skewed-clock.mjs'
import { createSleepers } from './sleepers.mjs'

const { fault, ...task } = JSON.parse(process.env.CREW_TASK)
const clock = createSkewedClock(task)
const files = fileStore({ dir: task.dir, now: () => clock.now() })
const store = doomed(files, striker(fault, task.dir))
const waker = createWaker(createSleepers({ ...task, store, clock }), {
  clock,
  onError: (error, at) => process.send({ message: String(error?.message ?? error), at }),
})
waker.start()
process.on('message', async () => {
  await waker.stop()
  files.close()
  process.disconnect()
})
