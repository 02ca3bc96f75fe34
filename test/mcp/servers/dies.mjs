// Dies in the middle of a call. Its test counts its lives by what `pid` returns.
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
