import { aguiHandler } from '../../src/agui/index.js'
import { chatHandler } from '../../src/ui/index.js'
import { sampled } from '../support/extent.js'
import { RequestMutator } from '../support/mutate-request.js'
import { chance as createChance } from '../chaos/world.js'
import { paying, type Shielding, shieldings } from '../support/paying.js'

type Handler = (request: Request) => Promise<Response>

/** A user's knowledge of a chat: messages and approval requests. */
interface Seen {
  messages: object[]
  approvals: { approvalId: string; callId: string; input: unknown }[]
}

interface Protocol {
  path: string
  serve: (agent: ReturnType<typeof paying>['agent']) => Handler
  /** The requests of a well-behaved page, which are then changed. */
  requests: (seen: Seen, chat: string, n: number) => object[]
}

const authorize = (request: Request): string | null => request.headers.get('x-user')

const protocols: Record<string, Protocol> = {
  useChat: {
    path: '/api/chat',
    serve: (agent) => chatHandler({ agent, authorize, whenBusy: 'refuse', onError: () => undefined }),
    requests: ({ messages, approvals }, id, n) => {
      const user = { id: `u${n % 6}`, role: 'user', parts: [{ type: 'text', text: `Pay ${n % 6}.` }] }
      const answers = (more: object) =>
        approvals.slice(-3).map(({ approvalId, callId: toolCallId, input }) => ({
          id,
          messages: [
            {
              id: 'm1.answer',
              role: 'assistant',
              parts: [
                { type: 'step-start' },
                {
                  type: 'tool-pay',
                  toolCallId,
                  input,
                  ...more,
                  approval: { id: approvalId, approved: true },
                },
              ],
            },
          ],
        }))
      return [
        { id, messages: [...messages.slice(-2), user], trigger: 'submit-message' },
        { id, messages: [user], trigger: 'regenerate-message', messageId: 'm1.answer' },
        { id, messages: [user], trigger: 'submit-message', messageId: `u${n % 3}` },
        ...answers({ state: 'approval-responded' }),
        ...answers({ state: 'approval-responded' }),
        ...answers({ state: 'output-available', output: 'paid' }),
      ]
    },
  },
  'AG-UI': {
    path: '/api/agui',
    serve: (agent) => aguiHandler({ agent, authorize, onError: () => undefined }),
    requests: ({ messages, approvals }, threadId, n) => {
      const user = { id: `u${n % 6}`, role: 'user', content: `Pay ${n % 6}.` }
      const run = { threadId, runId: `r${n}` }
      const answers = approvals.slice(-3).map(({ approvalId: interruptId }) => ({
        ...run,
        messages,
        resume: [{ interruptId, status: 'resolved', payload: { approved: true } }],
      }))
      const output = {
        id: 't',
        role: 'tool',
        toolCallId: approvals.at(-1)?.callId ?? 'call_0',
        content: 'paid',
      }
      return [
        { ...run, messages: [...messages.slice(-2), user] },
        { ...run, messages: [user], forwardedProps: { regenerateFrom: user.id } },
        { ...run, messages: [...messages, output] },
        ...answers,
        ...answers,
      ]
    },
  },
}

const people = ['ann', 'ann', 'ann', 'ben', ''] as const

/** Sends changed requests of two people, and checks after each that every payment has one approval of its person. */
async function play(protocol: Protocol, shielding: Shielding, seed: number, requests: number): Promise<void> {
  const chance = createChance(seed)
  const mutator = new RequestMutator(chance)
  const payer = paying({ shielding })
  const handler = protocol.serve(payer.agent)
  const seen: Record<string, Seen> = {
    ann: { messages: [], approvals: [] },
    ben: { messages: [], approvals: [] },
  }
  /** How far the log of each session was read. */
  const heads = new Map<string, number>()
  /** The messages of each user. */
  const granted: Record<string, string[]> = { ann: [], ben: [] }
  for (let n = 0; n < requests; n += 1) {
    const who = people[Math.floor(chance() * people.length)] ?? ''
    // A user may know another user's request.
    const known = seen[chance() < 0.1 ? 'ann' : who || 'ann'] as Seen
    const bodies = protocol.requests(known, 'c', n)
    const body = bodies[Math.floor(chance() * bodies.length)] as object
    const sent = {
      method: 'POST',
      url: `http://page.test${protocol.path}`,
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify(body),
    }
    const { url, body: text, ...rest } = chance() < 0.3 ? sent : mutator.mutate(sent)
    mutator.learn(sent.body)
    granted[who]?.push(text)
    const headers = { ...rest.headers, ...(who !== '' && { 'x-user': who }) }
    const request = new Request(url, { method: 'POST', headers, body: text })
    const response = await handler(request)
    const answer = await response.text()
    const place = `seed ${seed}, request ${n}: ${text.slice(0, 500)}\n${answer.slice(0, 500)}`
    if (who === '') expect([response.status, place]).toEqual([401, place])
    if (response.status !== 200) {
      const { error } = JSON.parse(answer) as { error: { code: string; message: string } }
      expect([response.status < 500, typeof error.code, place]).toEqual([true, 'string', place])
    }
    expect([/\bat \S+ \(|node_modules/.test(answer), place]).toEqual([false, place])
    await note(payer, seen, heads)
    // Two branches of a session can have the same call id. The key names the message, too.
    const paid = payer.payments.map(({ idempotencyKey }) => idempotencyKey)
    expect([new Set(paid).size, place]).toEqual([paid.length, place])
    for (const { sessionId, callId } of payer.payments) {
      const [person = ''] = sessionId.split(':')
      const ids = seen[person]?.approvals.filter((one) => one.callId === callId) ?? []
      const isGranted = granted[person]?.some(
        (sent) => sent.includes('"approved":true') && ids.some(({ approvalId }) => sent.includes(approvalId)),
      )
      expect([isGranted, sessionId, callId, place]).toEqual([true, sessionId, callId, place])
    }
  }
}

/** Records the requests in each user's chats. */
async function note(
  { agent, store }: ReturnType<typeof paying>,
  seen: Record<string, Seen>,
  heads: Map<string, number>,
): Promise<void> {
  for (const { id, head } of store.list({}) as { id: string; head: number }[]) {
    const person = seen[id.split(':')[0] ?? '']
    if (heads.get(id) === head) continue
    heads.set(id, head)
    const { run, messages } = await agent.replay(id)
    if (!person) continue
    person.messages = messages.map(({ id: key, role, content }) => ({ id: key, role, content }))
    for (const { callId, messageId, fingerprint, arguments: input } of run?.pending ?? []) {
      const approvalId = `${callId}~${messageId}~${fingerprint}`
      if (!person.approvals.some((one) => one.approvalId === approvalId))
        person.approvals.push({ approvalId, callId, input: JSON.parse(input) as unknown })
    }
  }
}

// 2,400 requests in all: 40 an episode, 6 episodes for each protocol and shield.
describe.each(Object.entries(protocols))('mutated requests of %s', (_, protocol) => {
  it.each([...Object.keys(shieldings).entries()])(
    'have no effect without a grant, and one effect per approval (%i: %s)',
    async (first, shielding) => {
      for (let episode = 0; episode < sampled(6); episode += 1)
        await play(protocol, shielding as Shielding, first * 100 + episode, 40)
    },
  )
})
