// Answers a call with a message that never ends.
import { serve, text, tool } from './raw-server.mjs'

const piece = 'x'.repeat(64 * 1024)

function pour() {
  while (process.stdout.write(piece));
  process.stdout.once('drain', pour)
}

process.stdout.on('error', () => process.exit())
serve({
  name: 'flood',
  tools: () => [tool('flood'), tool('calm')],
  call: (name) => {
    if (name === 'calm') return text('calm')
    process.stdout.write('{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"')
    pour()
    return undefined
  },
})
