import { aguiHandler } from '../../src/agui/index.js'
import type { PendingCall, SessionMessage } from '../../src/index.js'
import { paths } from '../../src/studio/routes.js'
import type { MomentView, SessionView } from '../../src/studio/protocol.js'
import { chatHandler } from '../../src/ui/index.js'
import { visit } from '../studio/visitor.js'
import { type Shielding, paying, shieldings } from '../support/paying.js'
import { until } from '../support/play.js'
import { runsAll } from '../support/extent.js'

type Payer = ReturnType<typeof paying>

/** A client that writes and approves. Answers can be repeated, and refusals are not errors here. */
interface Surface {
  say(id: string): Promise<unknown>
  /** The answer to the call that waits. */
  approve(): Promise<() => Promise<unknown>>
}

const words = 'Pay ann@example.com twice.'

function createPage(handler: (request: Request) => Promise<Response>, address: string) {
  const send = async (path: string, init: RequestInit = {}): Promise<string> => {
    const headers = { 'content-type': 'application/json' }
    return (await handler(new Request(`${address}${path}`, { headers, ...init }))).text()
  }
  return {
    post: (body: object) => send('', { method: 'POST', body: JSON.stringify(body) }),
    read: async () => JSON.parse(await send('/c')) as unknown,
  }
}

interface ToolPart {
  type: string
  state?: string
}

const surfaces: Record<string, (payer: Payer) => Promise<Surface> | Surface> = {
  useChat: ({ agent }) => {
    const page = createPage(chatHandler({ agent, authorize: 'none' }), 'http://page.test/api/chat')
    const post = (message: object) => page.post({ id: 'c', messages: [message] })
    return {
      say: (id) => post({ id, role: 'user', parts: [{ type: 'text', text: words }] }),
      approve: async () => {
        const messages = (await page.read()) as { id: string; parts: ToolPart[] }[]
        const { id, parts = [] } = messages.at(-1) ?? {}
        const part = parts.findLast(({ state }) => state === 'approval-requested') as
          | (ToolPart & { approval: object })
          | undefined
        const approval = { ...part?.approval, approved: true }
        const answered = { ...part, state: 'approval-responded', approval }
        return () => post({ id, role: 'assistant', parts: [answered] })
      },
    }
  },
  'AG-UI': ({ agent }) => {
    const page = createPage(aguiHandler({ agent, authorize: 'none' }), 'http://page.test/api/agui')
    const messages = async () => (await page.read()) as { messages: object[]; interrupts: { id: string }[] }
    let runs = 0
    const post = (body: object) => page.post({ threadId: 'c', runId: `r${++runs}`, ...body })
    return {
      say: (id) => post({ messages: [{ id, role: 'user', content: words }] }),
      approve: async () => {
        const { messages: shown, interrupts } = await messages()
        const resume = interrupts.map(({ id }) => ({
          interruptId: id,
          status: 'resolved',
          payload: { approved: true },
        }))
        return () => post({ messages: shown, resume })
      },
    }
  },
  'the studio': async ({ agent, store }) => {
    const visitor = await visit({ store, agent })
    return {
      say: (id) => run(agent, id),
      approve: async () => {
        const { rows } = await visitor.get<SessionView>(paths.session('c'))
        const moment = await visitor.get<MomentView>(paths.moment('c', rows.length))
        const { callId, fingerprint, messageId } = moment.pending[0] ?? {}
        return () => visitor.post(paths.answers('c'), { type: 'approve', callId, fingerprint, messageId })
      },
    }
  },
  'the inbox': (payer) =>
    inbox(payer, ({ callId, fingerprint, messageId = '' }) => ({ callId, fingerprint, messageId })),
  'the inbox, without the message': (payer) =>
    inbox(payer, ({ callId, fingerprint }) => ({ callId, fingerprint })),
  'the run': ({ agent }) => ({
    say: (id) => run(agent, id),
    approve: async () => {
      const resumed = await agent.resume('c')
      const [call] = (await resumed.result).pending ?? []
      return async () => {
        resumed.approve(call as PendingCall)
        await resumed.result
      }
    },
  }),
}

const run = (agent: Payer['agent'], clientId: string): Promise<unknown> =>
  agent.run([{ content: words, clientId }], { session: 'c' }).result.catch(ignore)

type Target = Extract<SessionMessage, { type: 'approve' }>

function inbox({ agent }: Payer, toTarget: (call: PendingCall) => Omit<Target, 'type'>): Surface {
  return {
    say: (id) => run(agent, id),
    approve: async () => {
      const { run: stored } = await agent.replay('c')
      const target = toTarget(stored?.pending?.[0] as PendingCall)
      return async () => {
        await agent.send('c', { type: 'approve', ...target })
        await (await agent.resume('c')).result
      }
    },
  }
}

/** Sends an answer or a message repeatedly, in sequence or at once, like a page with a broken connection. */
const retries: Record<string, (send: () => Promise<unknown>) => Promise<void>> = {
  'in turn': async (send) => {
    await send()
    await send().catch(ignore)
    await send().catch(ignore)
  },
  'at once': async (send) => {
    await Promise.all([send(), send(), send()].map(async (sent) => sent.catch(ignore)))
  },
}

const ignore = (): null => null

const callIds: Record<string, (request: number) => string> = {
  'one id for all calls': () => 'call_0',
  'ids that come again': (request) => `call_${request % 2}`,
  'ids that differ': (request) => `call_${request}`,
}

const cells = Object.keys(surfaces).flatMap((surface) =>
  Object.keys(shieldings).flatMap((shielding) =>
    Object.keys(callIds).flatMap((ids) =>
      Object.keys(retries).map((retry) => [surface, shielding, ids, retry] as const),
    ),
  ),
)

/** A sample contains each surface and each other value at least once. */
const isPlayed = (_: unknown, i: number): boolean => runsAll || i % 7 === 0

describe('a repeated message or approval has one effect', () => {
  it.each(cells.filter(isPlayed))('over %s, with %s, %s, %s', async (surface, shielding, ids, retry) => {
    const payer = paying({ shielding: shielding as Shielding, ids: callIds[ids] as () => string })
    const place = await (surfaces[surface] as (one: Payer) => Promise<Surface>)(payer)
    const repeat = retries[retry] as (send: () => Promise<unknown>) => Promise<void>
    const settled = (requests: number) => until(() => payer.requests === requests && payer.isFree())
    await repeat(() => place.say('u1'))
    await settled(1)
    const first = await place.approve()
    await repeat(first)
    await settled(2)
    expect(payer.payments).toHaveLength(1)
    const second = await place.approve()
    await first().catch(ignore)
    expect(payer.payments).toHaveLength(1)
    await repeat(second)
    await settled(3)
    expect(payer.payments).toHaveLength(2)
    // A second turn asks for the same payments.
    await place.say('u2')
    await settled(4)
    for (const send of [first, second, () => place.say('u2')]) await send().catch(ignore)
    await settled(4)
    expect(payer.payments).toHaveLength(2)
    await repeat(await place.approve())
    await settled(5)
    expect(payer.payments).toHaveLength(3)
  })
})
