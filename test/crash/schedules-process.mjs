// A process that carries out schedules. Its time runs faster than ours, and its clock differs from those of the others: it
// jumps back and forth. Each session that it begins to work on asks the model, which is told to the parent.
import { createAgent, defineAgents } from 'statewright'
import { createScheduler } from 'statewright/fleet'
import { fileStore } from 'statewright/stores/file'
import { createSkewedClock } from './skewed-clock.mjs'

const { dir, seed, speed, skewMs, startedAt, baseAt } = JSON.parse(process.env.CREW_TASK)
const clock = createSkewedClock({ seed, speed, skewMs, startedAt, baseAt })

const usage = {
  inputTokens: 10,
  outputTokens: 5,
  totalTokens: 15,
  cachedInputTokens: 0,
  reasoningTokens: 0,
}
const model = {
  provider: 'played',
  model: 'played-1',
  request: async () => {
    process.send({ type: 'asked' })
    await new Promise((resolve) => setTimeout(resolve, 2))
    return {
      text: 'Written.',
      reasoning: '',
      refusal: null,
      toolCalls: [],
      finishReason: 'stop',
      complete: true,
      usage,
      model: 'played-1',
    }
  },
}
const store = fileStore({ dir, now: () => clock.now() })
const agents = defineAgents({ reporter: createAgent({ model, store, clock, prices: null }) })
const scheduler = createScheduler(agents, {
  clock,
  onError: (error, at) => process.send({ type: 'error', message: String(error?.message ?? error), at }),
})
scheduler.start()
process.on('message', async () => {
  await scheduler.stop()
  store.close()
  process.disconnect()
})
