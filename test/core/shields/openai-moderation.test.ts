import { OpenAI } from 'openai'
import { SimulatedClock } from 'xstate'
import {
  type ModerationCategory,
  openaiModeration,
  type OpenAIModerationOptions,
  runShields,
  type ShieldOutcome,
} from '../../../src/core/shields/index.js'
import { type Answer, json, serve } from '../models/server.js'
import { pending, refusal } from './support.js'

const judgement = {
  flagged: true,
  categories: { hate: true, violence: true, 'self-harm/intent': false, illicit: null },
  category_scores: { hate: 0.9, violence: 0.6, 'self-harm/intent': 0.1, illicit: 0.05 },
}
const harmless = {
  flagged: false,
  categories: { hate: false, violence: false, 'self-harm/intent': false, illicit: null },
  category_scores: { hate: 0.01, violence: 0.02, 'self-harm/intent': 0, illicit: 0 },
}

const says = (...results: unknown[]): Answer => json(200, { id: 'modr-1', model: 'omni', results })

type Options = Omit<OpenAIModerationOptions, 'client'>

/** Queries a loopback server with this answer through the real client. */
async function moderate(answer: Answer, options: Options = {}, content = 'some text') {
  await using server = await serve(answer)
  const client = new OpenAI({ apiKey: 'test-key', baseURL: server.baseURL, maxRetries: 0 })
  const signal = new AbortController().signal
  const clock = new SimulatedClock()
  const outcome = await runShields([openaiModeration({ client, ...options })], content, {
    point: 'input',
    signal,
    clock,
  })
  return { outcome, requests: server.requests }
}

it('lists the categories of the client', () => {
  type ClientCategory = keyof OpenAI.Moderation.Categories
  const ours: ModerationCategory[] = ['hate' as ClientCategory]
  const theirs: ClientCategory[] = ['hate' as ModerationCategory]
  expect(ours).toEqual(theirs)
})

it('sends the text to the moderation endpoint, with the model', async () => {
  const { outcome, requests } = await moderate(says(harmless), { model: 'text-moderation-latest' })
  expect(requests.map(({ url, body }) => ({ url, body }))).toEqual([
    { url: '/v1/moderations', body: { model: 'text-moderation-latest', input: 'some text' } },
  ])
  expect(outcome.action).toBe('allow')
})

it('uses omni-moderation-latest by default', async () => {
  const { requests } = await moderate(says(harmless))
  expect(requests[0]?.body.model).toBe('omni-moderation-latest')
})

it('sends half of a surrogate pair as U+FFFD', async () => {
  const { requests } = await moderate(says(harmless), {}, 'a\ud83db')
  expect(requests[0]?.body.input).toBe('a\ufffdb')
})

it('sends no request for an empty text', async () => {
  const { outcome, requests } = await moderate(says(judgement), {}, ' \n')
  expect({ action: outcome.action, requests: requests.length }).toEqual({ action: 'allow', requests: 0 })
})

it.each<[string, Options, ShieldOutcome['action'], string | null]>([
  ['all categories', {}, 'block', "OpenAI's moderation flagged the text: hate, violence."],
  [
    'the selected ones',
    { categories: ['violence'] },
    'block',
    "OpenAI's moderation flagged the text: violence.",
  ],
  ['others', { categories: ['self-harm/intent'] }, 'allow', null],
  ['a threshold', { threshold: 0.7 }, 'block', "OpenAI's moderation flagged the text: hate."],
  [
    'a low threshold',
    { threshold: 0.05 },
    'block',
    "OpenAI's moderation flagged the text: hate, violence, self-harm/intent, illicit.",
  ],
  ['a threshold that is not reached', { threshold: 0.95 }, 'allow', null],
  [
    'both',
    { threshold: 0.5, categories: ['violence', 'illicit'] },
    'block',
    "OpenAI's moderation flagged the text: violence.",
  ],
  ['a warning', { action: 'warn' }, 'warn', "OpenAI's moderation flagged the text: hate, violence."],
])('judges by %s', async (_, options, action, message) => {
  const { outcome } = await moderate(says(judgement), options)
  expect({ action: outcome.action, message: outcome.message }).toEqual({ action, message })
})

it('applies every result, and a flag without a category', async () => {
  expect((await moderate(says(harmless, judgement))).outcome.action).toBe('block')
  const { outcome } = await moderate(says({ ...harmless, flagged: true }))
  expect(outcome).toMatchObject({ action: 'block', message: "OpenAI's moderation flagged the text." })
})

it.each<[string, Answer, Options, RegExp]>([
  [
    'a category that the model does not judge',
    says(judgement),
    { categories: ['illicit'] },
    /did not rate the category 'illicit'/,
  ],
  [
    'an unknown category',
    says(harmless),
    { categories: ['hat' as 'hate'] },
    /did not rate the category 'hat'/,
  ],
  ['no results', says(), {}, /returned no results/],
  ['an empty result', says(null), {}, /unreadable result/],
  [
    'a result without scores',
    says({ flagged: false, categories: {} }),
    { threshold: 0.5 },
    /unreadable result/,
  ],
  [
    'a score that is a string',
    says({ ...harmless, category_scores: { hate: 'low' } }),
    { threshold: 0.5 },
    /did not rate/,
  ],
  ['another API', json(200, { object: 'list', data: [] }), {}, /returned no results/],
  ['a body that is not JSON', json(200, '<html>'), {}, /'openai-moderation' failed/],
  [
    'a wrong key',
    json(401, { error: { message: 'Incorrect API key provided' } }),
    {},
    /Incorrect API key provided/,
  ],
  ['an error of the server', json(503, { error: { message: 'overloaded' } }), {}, /503/],
  [
    'a connection that breaks',
    (response) => response.destroy(),
    {},
    /'openai-moderation' failed: it threw: Connection error/,
  ],
])('fails closed on %s', async (_, answer, options, words) => {
  const { outcome } = await moderate(answer, options)
  expect(outcome.action).toBe('block')
  expect(outcome.message).toMatch(words)
})

it('aborts its request when it is stopped', async () => {
  const closed = pending()
  const reached = pending()
  await using server = await serve((response) => {
    response.on('close', closed.resolve)
    reached.resolve()
  })
  const client = new OpenAI({ apiKey: 'test-key', baseURL: server.baseURL })
  const controller = new AbortController()
  const outcome = runShields([openaiModeration({ client })], 'x', {
    point: 'output',
    signal: controller.signal,
  })
  await reached.promise
  controller.abort()
  expect((await outcome).action).toBe('block')
  await closed.promise
})

const client = new OpenAI({ apiKey: 'test-key' })
it.each<[string, unknown, RegExp]>([
  ['nothing', undefined, /the options must be an object/],
  ['no client', {}, /client must be an OpenAI client/],
  ['an invalid client', { client: { moderations: {} } }, /client must be/],
  ['an empty model', { client, model: '' }, /model must be/],
  ['no categories', { client, categories: [] }, /categories must be/],
  ['a string instead of categories', { client, categories: 'hate' }, /categories must be/],
  ['a number among them', { client, categories: ['hate', 1] }, /categories must be/],
  ['a threshold of 0', { client, threshold: 0 }, /threshold must be/],
  ['a threshold in percent', { client, threshold: 70 }, /threshold must be/],
  ['an invalid threshold', { client, threshold: Number.NaN }, /threshold must be/],
  ['redaction', { client, action: 'redact' }, /cannot redact/],
  ['a mistyped option', { client, treshold: 1 }, /no option 'treshold'/],
  ['an invalid time', { client, timeoutMs: -1 }, /timeoutMs must be/],
])('refuses %s', (_, options, words) => {
  const { code, message } = refusal(() => openaiModeration(options as OpenAIModerationOptions))
  expect(code).toBe('invalid_shield')
  expect(message).toMatch(words)
})
