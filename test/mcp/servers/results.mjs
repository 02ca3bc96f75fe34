// Answers with the exact result, error or progress given in the call's arguments.
import { send, serve, text, tool } from './raw-server.mjs'

let cancelled = 0

serve({
  name: 'results',
  tools: () => ['answer', 'refuse', 'hang', 'progress', 'cancelled', 'env'].map((name) => tool(name)),
  call: async (name, args, { params: { _meta: meta } }) => {
    const progress = (report) =>
      send({
        method: 'notifications/progress',
        params: { progressToken: meta.progressToken, ...report },
      })
    if (name === 'answer') return args.result
    if (name === 'refuse') throw new Error(args.message)
    if (name === 'cancelled') return text(String(cancelled))
    if (name === 'env') return text(JSON.stringify({ env: process.env, cwd: process.cwd() }))
    for (const report of args.reports ?? [{ progress: 1 }]) progress(report)
    return name === 'hang' ? undefined : text('done')
  },
  on: { 'notifications/cancelled': () => (cancelled += 1) },
})
