// Exits on any message before the handshake, as some server libraries do.
import { serve, text, tool } from './raw-server.mjs'

serve({
  name: 'shy',
  tools: () => [tool('go')],
  call: () => text('here'),
  on: { 'server/discover': () => process.exit(1) },
})
