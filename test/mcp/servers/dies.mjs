// Dies in the middle of a call. The test counts its restarts by the result of `pid`.
import { serve, text, tool } from './raw-server.mjs'

serve({
  name: 'mortal',
  tools: () => [tool('die'), tool('pid')],
  call: (name) => {
    if (name === 'pid') return text(String(process.pid))
    process.stderr.write('Out of luck: é\n', () => process.exit(3))
    return undefined
  },
})
