// Does not answer unknown requests.
import { createInterface } from 'node:readline'
import { send, text, tool } from './raw-server.mjs'

const answers = {
  initialize: ({ protocolVersion }) => ({
    protocolVersion,
    capabilities: { tools: {} },
    serverInfo: { name: 'mute', version: '1' },
  }),
  'tools/list': () => ({ tools: [tool('go')] }),
  'tools/call': () => text('here'),
}

createInterface({ input: process.stdin }).on('line', (line) => {
  const { id, method, params } = JSON.parse(line)
  if (method in answers) send({ id, result: answers[method](params) })
})
