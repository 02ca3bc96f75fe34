// Its list changes with its calls. `end` closes the listeners' stream and changes the list again.
import { send, serveModern, subscription, text, tool } from './modern-server.mjs'

let names = ['add', 'end', 'seen', 'hang', 'lie']
let listenId
const seen = []

serveModern({
  tools: () => names.map((name) => tool(name)),
  call: (name, args, { params: { _meta: meta } }) => {
    const tell = () =>
      send({ method: 'notifications/tools/list_changed', params: { _meta: { [subscription]: listenId } } })
    if (name === 'seen') return text(JSON.stringify(seen))
    if (name === 'lie') return { content: 'no list' }
    if (name === 'hang') {
      send({ method: 'notifications/progress', params: { progressToken: meta.progressToken, progress: 1 } })
      return undefined
    }
    names = [...names, args.name]
    if (name === 'end') send({ id: listenId, result: { resultType: 'complete' } })
    else tell()
    return text('done')
  },
  on: {
    'subscriptions/listen': ({ id }) => {
      listenId = id
      seen.push('listen')
    },
    'notifications/cancelled': () => seen.push('cancelled'),
    initialize: () => seen.push('initialize'),
  },
})
