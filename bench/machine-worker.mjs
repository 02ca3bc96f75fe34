// The loop without a wire, in a separate process: `machine-worker.mjs CASE` with CASE as JSON. Prints one JSON line. The model is a
// function of the transcript, and the tool concatenates two strings. A run that deviates from the script is not measured.
import { createHook } from 'node:async_hooks'
import { PerformanceObserver } from 'node:perf_hooks'
import { setTimeout as sleep } from 'node:timers/promises'
import { keptBytes } from './kept-bytes.mjs'
import { modelOf, refuse, resultOf, usage } from './loop.mjs'

const { what, impl, steps, runs, warmup = 0 } = JSON.parse(process.argv[2])

let executed = 0
async function read({ path }) {
  executed++
  return resultOf(path)
}

async function agentWith(execute, steps) {
  const { createAgent, defineTool } = await import('../dist/src/index.js')
  const { z } = await import('zod')
  const input = z.object({ path: z.string(), note: z.string() })
  const tools = [defineTool({ name: 'read', description: 'Reads a file.', input, execute })]
  return createAgent({ model: modelOf(steps), tools, limits: { maxSteps: 1000 } })
}

const contenders = {
  async statewright(steps, { options = {}, watch = () => undefined } = {}) {
    const agent = await agentWith(read, steps)
    return async () => {
      const run = agent.run('Go.', options)
      watch(run)
      const { state, error, output, usage } = await run.result
      if (state !== 'COMPLETED') refuse(`${state} ${error?.message}`)
      return { text: output, tokens: usage.totalTokens }
    }
  },

  async minimal(steps) {
    const { minimalMachine } = await import('./minimal-machine.mjs')
    return minimalMachine(modelOf(steps), read)
  },
}

/** Returns a function that makes one run and checks its result. */
async function runner(impl, steps, how) {
  const run = await contenders[impl](steps, how)
  return async () => {
    const before = executed
    const { text, tokens } = await run()
    if (text !== 'All done.' || tokens !== steps * usage.totalTokens) refuse(`${text} ${tokens}`)
    if (executed - before !== steps - 1) refuse(`${executed - before} calls`)
  }
}

const measurements = {
  /** CPU microseconds per step, and the share of garbage collection. */
  async cpu() {
    const run = await runner(impl, steps)
    for (let i = 0; i < warmup; i++) await run()
    let collecting = 0
    const observer = new PerformanceObserver((list) => {
      for (const { duration } of list.getEntries()) collecting += duration
    })
    observer.observe({ entryTypes: ['gc'] })
    const before = process.cpuUsage()
    for (let i = 0; i < runs; i++) await run()
    const { user, system } = process.cpuUsage(before)
    // The observer runs in a later turn.
    await sleep(5)
    return { cpu: (user + system) / (runs * steps), gc: (collecting * 1000) / (runs * steps) }
  },

  /** Bytes allocated per step. The young generation is large enough to avoid any collection during the measurement. */
  async garbage() {
    const run = await runner(impl, steps)
    for (let i = 0; i < warmup; i++) await run()
    global.gc()
    await sleep(5)
    let collections = 0
    const observer = new PerformanceObserver((list) => {
      collections += list.getEntries().length
    })
    observer.observe({ entryTypes: ['gc'] })
    const before = process.memoryUsage().heapUsed
    for (let i = 0; i < runs; i++) await run()
    const bytes = process.memoryUsage().heapUsed - before
    await sleep(5)
    if (collections > 0) refuse(`${collections} collections while garbage was counted`)
    return { bytes: bytes / (runs * steps) }
  },

  /** Bytes that a run retains while it waits for a tool. */
  async parked() {
    let waiting = 0
    const agent = await agentWith(() => {
      waiting++
      return new Promise(() => undefined)
    }, 50)
    const retained = []
    const park = async (count) => {
      for (let i = 0; i < count; i++) retained.push(agent.run('Go.'))
      while (waiting < retained.length) await sleep(1)
    }
    const bytes = (await keptBytes(park, runs)) / runs
    if (retained.some(({ state }) => state !== 'WAITING_FOR_TOOL')) refuse('a run that does not wait')
    return { bytes }
  },

  /**
   * The counts of one step, as the difference between a long run and a short run, which excludes the start and the end. No clock is
   * involved, so every machine reports the same counts.
   */
  async counts() {
    const counted = {}
    const count = (key) => {
      counted[key] = (counted[key] ?? 0) + 1
    }
    const { AbortController, setTimeout } = globalThis
    // oxlint-disable-next-line unbound-method -- called on the original receiver
    const { addEventListener } = EventTarget.prototype
    const counting = {
      AbortController: class extends AbortController {
        constructor() {
          super()
          count('abortControllers')
        }
      },
      setTimeout: (...args) => {
        count('timers')
        return setTimeout(...args)
      },
    }
    const hook = createHook({
      init: (_id, type) => {
        if (type === 'PROMISE') count('promises')
      },
    })
    const kinds = {
      '@xstate.microstep': 'microsteps',
      '@xstate.actor': 'actors',
      '@xstate.event': 'messages',
      '@xstate.snapshot': 'snapshots',
    }
    const inspect = ({ type }) => {
      if (type in kinds) count(kinds[type])
    }
    const lengths = [10, 60]
    const results = []
    for (const steps of lengths) {
      const quiet = await runner('statewright', steps)
      const inspected = await runner('statewright', steps, { options: { inspect } })
      const runOnce = await runner('statewright', steps, {
        watch: (run) => run.events$.subscribe(() => count('events')),
      })
      await quiet()
      for (const key of Object.keys(counted)) delete counted[key]
      Object.assign(globalThis, counting)
      EventTarget.prototype.addEventListener = function (...args) {
        count('listeners')
        return addEventListener.apply(this, args)
      }
      hook.enable()
      await quiet()
      hook.disable()
      Object.assign(globalThis, { AbortController, setTimeout })
      EventTarget.prototype.addEventListener = addEventListener
      await inspected()
      await runOnce()
      results.push({ ...counted })
    }
    const [short, long] = results
    const perStep = (key) => ((long[key] ?? 0) - (short[key] ?? 0)) / (lengths[1] - lengths[0])
    const keys = ['microsteps', 'actors', 'messages', 'snapshots', 'events', 'promises', 'timers']
    keys.push('abortControllers', 'listeners')
    return Object.fromEntries(keys.map((key) => [key, perStep(key)]))
  },
}

console.log(JSON.stringify(await measurements[what]()))
process.exit(0)
