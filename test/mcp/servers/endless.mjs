// A list of tools without end.
import { serve, tool } from './raw-server.mjs'

let page = 0

serve({
  name: 'endless',
  page: () => {
    page += 1
    return { tools: Array.from({ length: 300 }, (_, i) => tool(`t${page}-${i}`)), nextCursor: `${page}` }
  },
})
