// Names that every provider rejects.
import { serve, text, tool } from './raw-server.mjs'

const names = ['a.b', 'a/b', 'a b', 'über', 'x'.repeat(100), `${'x'.repeat(99)}y`, '__proto__', 'constructor']

serve({
  name: 'odd names/of "mine"',
  tools: () => names.map((name) => tool(name)),
  call: (name) => text(`called ${name}`),
})
