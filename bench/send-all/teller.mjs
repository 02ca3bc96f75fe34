// The process that calls `sendAll`. It is killed, or prints its receipt.
import { sendAll } from '../../dist/src/fleet/index.js'
import { openStore } from './store.mjs'

const [where, tenant, killAfter] = process.argv.slice(2)
const store = openStore(where)
const began = performance.now()
const receipt = await sendAll(
  store,
  { tags: { tenant } },
  { type: 'cancel', why: 'The contract has ended.' },
  {
    key: 'measured',
    onProgress: ({ sessions }) => {
      if (sessions === Number(killAfter)) process.kill(process.pid, 'SIGKILL')
    },
  },
)
process.send({ receipt, at: performance.timeOrigin + performance.now(), ms: performance.now() - began })
await store.close()
process.disconnect()
