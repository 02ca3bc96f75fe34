import { toApprovalId } from '../../../src/web/approval-id.js'
import { aguiHandler } from '../../../src/agui/index.js'
import { toInterruptId } from '../../../src/agui/approval-interrupts.js'
import { chatHandler } from '../../../src/ui/index.js'
import { passing } from '../../support/passing.js'
import { grants } from '../grants.js'
import type { Place, Surface, Told } from '../surface.js'
import { chatId } from '../world.js'

type Handler = (request: Request) => Promise<Response>

const origin = 'http://page.test'

/** A handler's full answer, or the start of a stream without an end. */
async function askedOf(handler: Handler, place: Place, path: string, body?: unknown): Promise<Told> {
  const request = new Request(`${origin}${path}`, {
    ...(body === undefined ? {} : { method: 'POST', body: JSON.stringify(body) }),
    headers: { 'content-type': 'application/json', origin, host: 'page.test' },
  })
  const response = await passing(place.world.clock, handler(request))
  const shown = await textOf(response, place)
  if (response.status < 400) return { refused: null, shown }
  const { error } = JSON.parse(shown) as { error: { code: string } }
  return { refused: error.code, shown }
}

async function textOf(response: Response, { world }: Place): Promise<string> {
  if (!response.headers.get('content-type')?.startsWith('text/event-stream')) return response.text()
  world.holderLeaves()
  const reader = (response.body as ReadableStream<Uint8Array>).getReader()
  const chunks: Uint8Array[] = []
  const reading = (async () => {
    for (let read = await reader.read(); !read.done; read = await reader.read()) chunks.push(read.value)
  })()
  await world.passing(reading)
  await reader.cancel()
  await reading.catch(() => undefined)
  return Buffer.concat(chunks).toString('utf8')
}

const make = { chatHandler, aguiHandler }
const paths = { chatHandler: '/api/chat', aguiHandler: '/api/agui' }

function surface(
  of: keyof typeof make,
  does: Surface['does'],
  route: string,
  ask: (place: Place) => { path?: string; body?: unknown },
  more: { as?: string; whenBusy?: 'steer' | 'refuse' } = {},
): Surface {
  const { as, whenBusy } = more
  return {
    of: `${of}.${route}`,
    ...(as !== undefined && { as }),
    does,
    knows: 'people',
    use: (place) => {
      const handler = make[of]({
        agent: place.process.agent,
        authorize: () => grants[place.who] as never,
        onError: () => undefined,
        ...(whenBusy && { whenBusy }),
      })
      const { path = '', body } = ask(place)
      return askedOf(handler, place, paths[of] + path, body)
    },
  }
}

const both = (route: string, does: Surface['does'], path: string, body?: object): Surface[] => [
  surface('chatHandler', does, route, () => ({ path, body })),
  surface('aguiHandler', does, route, () => ({ path, body })),
]

const stepStart = { type: 'step-start' }

/** A page message in the format of both protocols. */
const createBody = (id: string, text: string): object => ({
  id: chatId,
  threadId: chatId,
  runId: 'r2',
  messages: [{ id, role: 'user', content: text, parts: [{ type: 'text', text }] }],
})

const ofBoth = ['chatHandler', 'aguiHandler'] as const

/** The routes of both handlers, by `parseRoute`. */
export const pageSurfaces: Surface[] = [
  surface('chatHandler', 'begin', 'send', () => ({
    body: { id: chatId, messages: [{ id: 'm2', role: 'user', parts: [{ type: 'text', text: 'Again.' }] }] },
  })),
  surface('aguiHandler', 'begin', 'send', () => ({
    body: { threadId: chatId, runId: 'r2', messages: [{ id: 'm2', role: 'user', content: 'Again.' }] },
  })),
  {
    ...surface('chatHandler', 'branch', 'send', () => ({
      body: {
        id: chatId,
        trigger: 'regenerate-message',
        messages: [{ id: 'm1', role: 'user', parts: [{ type: 'text', text: 'Again.' }] }],
      },
    })),
    as: 'another answer',
  },
  {
    ...surface('aguiHandler', 'branch', 'send', () => ({
      body: { threadId: chatId, runId: 'r2', messages: [], forwardedProps: { regenerateFrom: 'm1' } },
    })),
    as: 'another answer',
  },
  {
    ...surface('chatHandler', 'branch', 'send', () => ({
      body: {
        id: chatId,
        messageId: 'm1',
        messages: [{ id: 'm1', role: 'user', parts: [{ type: 'text', text: 'Other words.' }] }],
      },
    })),
    as: 'an edit',
  },
  surface('chatHandler', 'answer', 'send', ({ question }) => {
    const approval = { id: toApprovalId(question), approved: true }
    const part = { type: 'tool-pay', toolCallId: question.callId, state: 'approval-responded', approval }
    return { body: { id: chatId, messages: [{ id: 'x', role: 'assistant', parts: [stepStart, part] }] } }
  }),
  surface('aguiHandler', 'answer', 'send', ({ question }) => {
    const id = toInterruptId(question.callId, question)
    const resume = [{ interruptId: id, status: 'resolved', payload: { approved: true } }]
    return { body: { threadId: chatId, runId: 'r2', messages: [], resume } }
  }),
  surface(
    'chatHandler',
    'answer',
    'send',
    ({ question }) => {
      const approval = { id: toApprovalId(question), approved: true, grant: {} }
      const part = { type: 'tool-pay', toolCallId: question.callId, state: 'approval-responded', approval }
      return { body: { id: chatId, messages: [{ id: 'x', role: 'assistant', parts: [stepStart, part] }] } }
    },
    { as: 'an approval with a grant' },
  ),
  surface(
    'aguiHandler',
    'answer',
    'send',
    ({ question }) => {
      const id = toInterruptId(question.callId, question)
      const resume = [{ interruptId: id, status: 'resolved', payload: { approved: true, grant: {} } }]
      return { body: { threadId: chatId, runId: 'r2', messages: [], resume } }
    },
    { as: 'an approval with a grant' },
  ),
  surface(
    'aguiHandler',
    'branch',
    'send',
    () => ({ body: { ...createBody('m1', 'Other words.'), forwardedProps: { regenerateFrom: 'm1' } } }),
    { as: 'an edit' },
  ),
  ...ofBoth.flatMap((of) => [
    surface(of, 'begin', 'send', () => ({ body: createBody('m2', 'Again.') }), {
      as: 'steering',
      whenBusy: 'steer',
    }),
    surface(of, 'begin', 'send', () => ({ body: createBody('m2', 'Again.') }), {
      as: 'refusing',
      whenBusy: 'refuse',
    }),
    surface(
      of,
      'turn back',
      'send',
      () => ({ body: { ...createBody('m2', 'Again.'), branch: 2, forwardedProps: { branch: 2 } } }),
      { as: 'on another branch' },
    ),
    surface(of, 'look', 'read', () => ({ path: `/${chatId}?branch=1` }), { as: 'a branch' }),
  ]),
  surface(
    'chatHandler',
    'answer',
    'send',
    ({ question }) => {
      const approval = { id: toApprovalId(question), approved: false, reason: 'No.' }
      const part = { type: 'tool-pay', toolCallId: question.callId, state: 'approval-responded', approval }
      return { body: { id: chatId, messages: [{ id: 'x', role: 'assistant', parts: [stepStart, part] }] } }
    },
    { as: 'a rejection' },
  ),
  surface(
    'chatHandler',
    'answer',
    'send',
    ({ question: { callId } }) => {
      const part = { type: 'tool-pay', toolCallId: callId, state: 'output-available', output: 'paid' }
      return { body: { id: chatId, messages: [{ id: 'x', role: 'assistant', parts: [stepStart, part] }] } }
    },
    { as: 'an output' },
  ),
  surface(
    'aguiHandler',
    'answer',
    'send',
    ({ question: { callId } }) => ({
      body: {
        threadId: chatId,
        runId: 'r2',
        messages: [{ id: 'x', role: 'tool', toolCallId: callId, content: 'paid' }],
      },
    }),
    { as: 'an output' },
  ),
  ...both('read', 'look', `/${chatId}`),
  ...both('stream', 'follow', `/${chatId}/stream`),
  ...both('stop', 'stop', `/${chatId}/stop`, {}),
]
