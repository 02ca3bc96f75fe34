// Its list changes with its calls.
import { send, serve, text, tool } from './raw-server.mjs'

let names = ['add', 'remove']
/** The tools' descriptions after the change. */
const more = {}

serve({
  name: 'changing',
  tools: () => names.map((name) => tool(name, more[name])),
  call: (name, args) => {
    if (args.more !== undefined) more[args.name] = args.more
    else if (name === 'add') names.push(args.name)
    else if (name === 'remove') names = names.filter((known) => known !== args.name)
    else return text(`This is ${name}.`)
    send({ method: 'notifications/tools/list_changed' })
    return text('done')
  },
})
