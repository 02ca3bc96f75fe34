// One measurement of bench/sessions.mjs in a separate process. Prints one JSON line.
import { join } from 'node:path'
import { z } from 'zod'
import { createAgent, defineTool, openaiChat } from '../dist/src/index.js'
import { fileStore } from '../dist/src/stores/file/index.js'
import { median } from './statistics.mjs'

const { what, url, folder, steps, rounds, warmup, sessions } = JSON.parse(process.argv[2])

const tool = defineTool({
  name: 'read',
  description: 'Reads a file.',
  input: z.object({ path: z.string(), note: z.string() }),
  readOnly: true,
  execute: ({ path }) => path + 'x'.repeat(200),
})

function agentOn(store) {
  return createAgent({
    model: openaiChat({ model: `steps-${steps}`, baseURL: url, apiKey: 'bench' }),
    tools: [tool],
    limits: { maxSteps: null },
    ...(store && { store }),
  })
}

async function timed(agent) {
  const start = performance.now()
  const { state, error } = await agent.run('Go.').result
  if (state !== 'COMPLETED') throw new Error(`${state} ${error?.message}`)
  return ((performance.now() - start) * 1000) / steps
}

const measurements = {
  /** Alternates the three, so that drift affects all equally. */
  async persist() {
    const agents = {
      none: agentOn(),
      normal: agentOn(fileStore({ dir: join(folder, `normal-${steps}`) })),
      full: agentOn(fileStore({ dir: join(folder, `full-${steps}`), sync: 'full' })),
    }
    const times = { none: [], normal: [], full: [] }
    for (let i = 0; i < warmup + rounds; i++) {
      for (const name of Object.keys(agents)) {
        const time = await timed(agents[name])
        if (i >= warmup) times[name].push(time)
      }
    }
    return Object.fromEntries(Object.entries(times).map(([name, values]) => [name, median(values)]))
  },

  async load() {
    const store = fileStore({ dir: join(folder, 'load') })
    const { sessionId } = await agentOn(store).run('Go.', { session: 'long' }).result
    store.close()
    const again = fileStore({ dir: join(folder, 'load') })
    const start = performance.now()
    const { run, seq } = await agentOn(again).replay(sessionId)
    if (run.steps !== steps) throw new Error(`${run.steps} steps`)
    return { ms: performance.now() - start, records: seq }
  },

  async concurrent() {
    const store = fileStore({ dir: join(folder, 'concurrent') })
    const agent = agentOn(store)
    const start = performance.now()
    const ids = Array.from({ length: sessions }, (_, i) => `s${i}`)
    const results = await Promise.all(ids.map((session) => agent.run('Go.', { session }).result))
    const perSecond = (sessions / (performance.now() - start)) * 1000
    let lost = 0
    for (const [i, session] of ids.entries()) {
      const records = store.read(session)
      lost += records.filter(({ seq }, at) => seq !== at + 1).length
      const { run } = await agent.replay(session)
      if (JSON.stringify(run) !== JSON.stringify(results[i])) lost += 1
    }
    return { sessions, lost, perSecond }
  },
}

console.log(JSON.stringify(await measurements[what]()))
process.exit(0)
