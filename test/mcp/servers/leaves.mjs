// Ends at whatever comes before a greeting, as some libraries make servers do.
import { serve, text, tool } from './raw-server.mjs'

serve({
  name: 'shy',
  tools: () => [tool('go')],
  call: () => text('here'),
  on: { 'server/discover': () => process.exit(1) },
})
