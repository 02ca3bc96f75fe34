import { createAgent, runSession } from '../../src/index.js'
import { fileStore } from '../../src/stores/file/index.js'
import { longTest } from '../support/extent.js'
import { ManualModel } from '../support/manual-model.js'
import { buildAgents, type Child, startChild } from './child.js'
import { makeFolder, removeFolder } from './folder.js'

const built = buildAgents()
afterAll(built.remove)

const size = Number(process.env['STATEWRIGHT_QUEUE'] ?? 200)

const ms = (time: number): Promise<void> =>
  new Promise((resolve) => {
    setTimeout(resolve, time)
  })

/** A process that reports queued entries until it is killed. */
const driver = `
  const { createAgent, runSession } = await import(module)
  const usage = { inputTokens: 1, outputTokens: 1, totalTokens: 2, cachedInputTokens: 0, reasoningTokens: 0 }
  const answer = { reasoning: '', refusal: null, toolCalls: [], finishReason: 'stop', complete: true, usage, model: 'm' }
  let hasAsked = false
  const model = {
    provider: 'p',
    model: 'm',
    request: async ({ messages }) => {
      if (!hasAsked) say('asked')
      hasAsked = true
      await new Promise((resolve) => setTimeout(resolve, Math.random() * 4))
      return { ...answer, text: 're: ' + messages.at(-1).content }
    },
  }
  const store = fileStore({ dir })
  const agent = createAgent({ model, store, limits: { tokenBudget: 0, costLimit: 0 } })
  say('ready')
  for (;;) {
    try {
      await runSession(agent, { session: 's' })
    } catch {}
    await new Promise((resolve) => setTimeout(resolve, 3))
  }
`

longTest(
  'two processes that are killed repeatedly send each message once, in order',
  async () => {
    const dir = makeFolder()
    const store = fileStore({ dir })
    const model = new ManualModel()
    const agent = createAgent({ model, store })
    const children: Child[] = []
    let isOver = false
    let kills = 0
    /** A new process replaces each killed one. */
    const keepDriving = async (): Promise<void> => {
      // oxlint-disable-next-line no-unmodified-loop-condition -- modified when the queue is empty
      while (!isOver) {
        const child = startChild(built.url, dir, `const module = ${JSON.stringify(built.url)}\n${driver}`)
        children.push(child)
        // At the end it may be killed before it reports anything.
        await child.next().catch(() => undefined)
        // Most processes get to their work first, because a run that kills five processes in a row would also end the queue.
        if (Math.random() < 0.7) await Promise.race([child.next().catch(() => undefined), ms(10_000)])
        await ms(50 + Math.random() * 500)
        if (isOver) break
        child.process.kill('SIGKILL')
        kills += 1
        await child.ended
      }
    }
    try {
      const begun = runSession(agent, { session: 's', input: 'start' })
      while (!model.pending) await ms(1)
      model.pending.answer({ text: 'begun' })
      await begun
      const driving = [keepDriving(), keepDriving()]
      const expected: string[] = []
      // A slow machine sends fewer messages.
      const enough = Date.now() + 240_000
      for (let i = 0; i < size && (i < 40 || Date.now() < enough); i += 1) {
        const input = `message ${i}`
        expected.push(input)
        for (;;) {
          // Each is sent twice, as by a sender that did not receive the receipt.
          const reported = await Promise.allSettled(
            [1, 2].map(() => agent.send('s', { type: 'message', when: 'next', input, messageId: `id-${i}` })),
          )
          // Yields to timers and processes.
          await ms(1)
          if (reported.some(({ status }) => status === 'fulfilled')) break
          await ms(20)
        }
      }
      const giveUp = Date.now() + 400_000
      while ((store.inbox?.read('s') ?? []).length > 0 || store.get('s')?.holder !== null) {
        if (Date.now() > giveUp) throw new Error('The queue is never empty.')
        await ms(50)
      }
      isOver = true
      for (const child of children) child.process.kill('SIGKILL')
      await Promise.all(driving)
      const { messages } = await agent.replay('s')
      const texts = messages.flatMap(({ role, content }) => (role === 'user' ? [content] : []))
      expect(texts).toEqual(['start', ...expected])
      const answered = messages.filter(
        ({ role, content }) => role === 'assistant' && String(content).startsWith('re: '),
      )
      expect(new Set(answered.map(({ content }) => content)).size).toBe(answered.length)
      console.log(`${expected.length} messages, ${kills} kills, ${answered.length} answers`)
    } finally {
      isOver = true
      for (const child of children) child.process.kill('SIGKILL')
      await Promise.all(children.map(({ ended }) => ended))
      store.close?.()
      removeFolder(dir)
    }
  },
  900_000,
)
