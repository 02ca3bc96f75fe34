import { jest } from '@jest/globals'
import fc from 'fast-check'
import {
  createAgent,
  type Message,
  type ModelProvider,
  runSession,
  StatewrightError,
} from '../../src/index.js'
import { findHistoryProblem } from '../support/history.js'
import { plainAnswer } from '../support/manual-model.js'
import { cases, delays, SlowPlace } from '../support/slow-place.js'

jest.setTimeout(cases.numRuns * 10_000)

/** The actions of processes that share a session, with the milliseconds since the previous action. */
const deed = fc.record({
  gap: fc.nat(40),
  by: fc.nat(1),
  what: fc.constantFrom('queue', 'queue', 'branch', 'branch', 'edit', 'turn back', 'drive', 'drive', 'fork'),
})
type Deed = typeof deed extends fc.Arbitrary<infer Value> ? Value : never

/** Another process has the session or has just changed it. */
const mayBeRefused = ['session_busy', 'unfinished_run', 'unknown_branch', 'other_branch', 'unknown_message']

class Story {
  readonly place: SlowPlace
  readonly agents: ReturnType<typeof createAgent>[]
  /** The texts of queued messages and of started branches. */
  readonly queued: string[] = []
  readonly wrong: string[] = []
  branched = 0
  readonly #underWay: Promise<void>[] = []

  constructor(ways: readonly number[]) {
    this.place = new SlowPlace(ways)
    this.agents = [this.enter(), this.enter()]
  }

  enter() {
    const { place } = this
    const model: ModelProvider = {
      provider: 'manual',
      model: 'manual-1',
      request: async ({ messages }) => {
        await place.way()
        return { ...plainAnswer, text: `Answer to ${messages.length} messages.` }
      },
    }
    return createAgent({ model, clock: place.clock, store: place.open() })
  }

  begin({ by, what }: Deed): void {
    const work = this.#do(this.agents[by] as (typeof this.agents)[0], what).catch((error: unknown) => {
      if (!(error instanceof StatewrightError) || !mayBeRefused.includes(error.code))
        this.wrong.push(`${what}: ${String(error)}`)
    })
    this.#underWay.push(work)
  }

  async #do(agent: (typeof this.agents)[0], what: Deed['what']): Promise<void> {
    switch (what) {
      case 'queue': {
        const input = `Queued ${this.queued.length}.`
        this.queued.push(input)
        await agent.send('s', { type: 'message', when: 'next', input })
        return
      }
      case 'turn back':
        return agent.selectBranch('s', 1)
      case 'drive':
        await runSession(agent, { session: 's' })
        return
      case 'fork':
        await agent.fork('s')
        return
      default: {
        const edit = what === 'edit' ? { edit: 'Other words.' } : {}
        const { state } = await agent.branch('s', { from: 'm1', ...edit }).result
        if (state === 'COMPLETED') this.branched += 1
        else this.wrong.push(`${what}: ${state}`)
      }
    }
  }

  async settle(): Promise<void> {
    await this.place.of(Promise.all(this.#underWay))
  }
}

const textsOf = (messages: readonly Message[]): unknown[] =>
  messages.filter(({ role }) => role === 'user').map(({ content }) => content)

test('processes that branch and queue over a slow store lose no message or answer, and deliver each once', async () => {
  await fc.assert(
    fc.asyncProperty(delays, fc.array(deed, { maxLength: 10 }), async (ways, deeds) => {
      const story = new Story(ways)
      const { place } = story
      await place.of(story.enter().run('Go.', { session: 's' }).result)
      for (const each of deeds) {
        await place.pass(each.gap)
        story.begin(each)
      }
      await story.settle()
      const agent = story.enter()
      await place.of(runSession(agent, { session: 's' }))
      expect(story.wrong).toEqual([])
      const branches = await place.of(agent.listBranches('s'))
      expect(branches).toHaveLength(1 + story.branched)
      const texts: unknown[] = []
      for (const { branch } of branches) {
        const { messages } = await place.of(agent.replay('s', { branch }))
        expect(findHistoryProblem(messages)).toBeNull()
        expect(messages.filter(({ role }) => role === 'assistant')).toHaveLength(textsOf(messages).length)
        texts.push(...textsOf(messages))
      }
      // Visible on its branch and on branches that split off after it. This log has none of the latter.
      for (const text of story.queued)
        expect([text, texts.filter((one) => one === text).length]).toEqual([text, 1])
      expect(place.near.inbox?.read('s')).toEqual([])
      for (const { id } of place.near.list()) expect(place.near.get(id)).toMatchObject({ holder: null })
    }),
    { ...cases, endOnFailure: true },
  )
})
