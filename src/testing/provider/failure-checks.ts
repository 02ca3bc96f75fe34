import { toModelFailure } from '../../core/models/to-model-failure.js'
import { CheckFailure, expectTrue, expectSame, formatValue } from '../check-assertions.js'
import {
  askProvider,
  type ProviderCheckSpec,
  getFailure,
  type ProviderScene,
  waitUntil,
} from './ask-provider.js'

/** A provider makes one attempt; the loop retries. */
export const failureChecks: readonly ProviderCheckSpec[] = [
  {
    name: 'a rate limit',
    turns: [{ status: 429, retryAfter: 7 }, createUnwantedTurn()],
    async run(scene) {
      const { kind, status, retryAfterMs } = await getFailure(scene)
      expectSame(
        'the failure',
        { kind, status, retryAfterMs },
        { kind: 'rate_limit', status: 429, retryAfterMs: 7000 },
      )
      expectAttempts(scene, 1)
    },
  },
  ...[503, 529].map(
    (status): ProviderCheckSpec => ({
      name: `an outage (${status})`,
      turns: [{ status }, createUnwantedTurn()],
      async run(scene) {
        const failure = await getFailure(scene)
        expectSame(
          'the failure',
          { kind: failure.kind, status: failure.status },
          { kind: 'transient', status },
        )
        expectAttempts(scene, 1)
      },
    }),
  ),
  {
    name: 'a rejected key',
    turns: [{ status: 401, error: { message: 'The key is invalid.' } }],
    async run(scene) {
      const { kind, status, message } = await getFailure(scene)
      expectSame('the failure', { kind, status }, { kind: 'fatal', status: 401 })
      expectTrue(
        message.includes('key'),
        `its message should explain what to do about the key, but is ${formatValue(message)}`,
      )
    },
  },
  {
    name: 'a rejected request',
    turns: [{ status: 400, error: { message: 'temperature: must be at most 1' } }],
    async run(scene) {
      const { kind, message } = await getFailure(scene)
      expectSame('the kind of failure', kind, 'fatal')
      expectTrue(
        message.includes('temperature: must be at most 1'),
        `its message should repeat the provider's reason, but is ${formatValue(message)}`,
      )
    },
  },
  {
    name: 'a request beyond the context window',
    turns: [{ status: 400, error: { message: 'prompt is too long: 210000 tokens > 200000 maximum' } }],
    async run(scene) {
      expectSame('the kind of failure', (await getFailure(scene)).kind, 'context_overflow')
    },
  },
  {
    name: 'a broken connection',
    only: 'stream',
    turns: [{ text: 'One two three four', chunkSize: 4, cutAfter: 2 }],
    async run(scene) {
      const { kind, partialText } = await getFailure(scene)
      expectTrue(
        kind === 'transient' || kind === 'incomplete',
        `it should be retried, but its kind is ${kind}`,
      )
      expectSame('the text received so far', partialText, 'One two ')
    },
  },
  {
    name: 'a stream without an end',
    only: 'stream',
    turns: [{ text: 'One two', endWithout: 'both' }],
    async run(scene) {
      const outcome = await askProvider(scene).then(
        ({ response }) => (response.complete ? 'complete' : 'incomplete'),
        async () => 'incomplete',
      )
      expectSame('the answer', outcome, 'incomplete')
    },
  },
  {
    name: 'an error in a stream',
    only: 'stream',
    turns: [
      {
        text: 'One two three four',
        chunkSize: 4,
        errorInStream: { after: 1, error: { type: 'overloaded_error', message: 'Overloaded' } },
      },
    ],
    async run(scene) {
      const outcome = await askProvider(scene).then(
        ({ response }) => (response.complete ? 'complete' : 'incomplete'),
        (error: unknown) => toModelFailure(error).kind,
      )
      const isTriedAgain = outcome === 'transient' || outcome === 'incomplete'
      expectTrue(isTriedAgain, `it should be retried, but is ${outcome}`)
    },
  },
  {
    name: 'an unreadable stream',
    only: 'stream',
    turns: [{ raw: { headers: { 'content-type': 'text/event-stream' }, body: 'data: {"broken\n\n' } }],
    async run(scene) {
      const outcome = await askProvider(scene).then(
        ({ response }) => (response.complete ? `an answer, ${formatValue(response.text)}` : 'no answer'),
        () => 'no answer',
      )
      expectSame('the outcome', outcome, 'no answer')
    },
  },
  {
    name: 'an abort midway',
    turns: [{ text: 'One two three four', chunkSize: 4, hang: 2 }],
    async run(scene) {
      const controller = new AbortController()
      const reason = new Error('Enough.')
      const answer = askProvider(scene, {}, controller.signal, (text) => {
        if (text === 'One two ') controller.abort(reason)
      })
      answer.catch(() => undefined)
      if (!scene.stream) {
        await waitUntil(scene, () => scene.server.requests.length > 0)
        controller.abort(reason)
      }
      await expectRejection(answer, reason)
      await waitUntil(scene, () => scene.server.requests[0]?.aborted === true)
    },
  },
  {
    name: 'an abort before the response',
    turns: [{ hang: true }],
    async run(scene) {
      const controller = new AbortController()
      const reason = new Error('Enough.')
      const answer = askProvider(scene, {}, controller.signal)
      answer.catch(() => undefined)
      await waitUntil(scene, () => scene.server.requests.length > 0)
      controller.abort(reason)
      await expectRejection(answer, reason)
      await waitUntil(scene, () => scene.server.requests[0]?.aborted === true)
    },
  },
  {
    name: 'an abort before the request',
    turns: [createUnwantedTurn()],
    async run(scene) {
      const reason = new Error('Enough.')
      await expectRejection(askProvider(scene, {}, AbortSignal.abort(reason)), reason)
      expectAttempts(scene, 0)
    },
  },
]

function createUnwantedTurn() {
  return { text: 'There must not be a second request.' }
}

function expectAttempts({ server }: ProviderScene, times: number): void {
  const { length } = server.requests
  expectTrue(
    length === times,
    `the server should have received ${times} requests, not ${length}, because the loop does the retries`,
  )
}

async function expectRejection(answer: Promise<unknown>, reason: Error): Promise<void> {
  const error = await answer.then(
    () => new CheckFailure('it should have rejected'),
    (rejected: unknown) => rejected,
  )
  if (error instanceof CheckFailure) throw error
  expectTrue(
    error === reason,
    `it should have rejected with the signal's reason, but rejected with ${String(error)}`,
  )
}
