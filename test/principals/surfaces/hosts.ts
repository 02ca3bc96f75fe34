import type { Agents } from '../../../src/index.js'
import { type DbosLike, type DbosSessions, dbosSessions } from '../../../src/dbos/index.js'
import { type RestateLike, restateSessions } from '../../../src/restate/index.js'
import type { RestateContext } from '../../../src/restate/restate-sessions.js'
import { listOf, operator, type Place, type Surface } from '../surface.js'
import { sender, session } from '../world.js'

/** A queue that drives its jobs at once and ignores delayed jobs. */
class Queue {
  readonly executorID = 'me'
  readonly workflowID = undefined
  #work: ((queued: unknown) => Promise<unknown>) | undefined

  registerWorkflow = (work: (queued: unknown) => Promise<unknown>) => (this.#work = work)
  registerQueue = () => Promise.resolve({})
  runStep = (step: () => Promise<unknown>) => step()
  listWorkflows = () => Promise.resolve([])
  resumeWorkflow = () => Promise.resolve()
  enqueueWorkflowWithOptions = ({ delaySeconds }: { delaySeconds?: number }, queued: unknown) =>
    delaySeconds === undefined ? this.#work?.(queued) : Promise.resolve()
}

const listed = { agents: 'listed' } as const

function dbos(
  of: keyof DbosSessions,
  does: Surface['does'],
  act: (place: Place, own: DbosSessions) => unknown,
  as?: string,
): Surface {
  const open = (place: Place) => dbosSessions(new Queue() as unknown as DbosLike, listOf(place))
  return operator(`dbosSessions.${of}`, does, (place) => act(place, open(place)), {
    ...listed,
    ...(as !== undefined && { as }),
  })
}

type Handler = (context: RestateContext, input?: object) => Promise<unknown>

/** The handlers of the object. */
export function restateHandlers(agents: Agents): Record<string, Handler> {
  const handlers: Record<string, Handler> = {}
  const sdk = {
    TerminalError: class extends Error {},
    handlers: {
      object: { exclusive: (_: object, work: Handler) => work, shared: (_: object, work: Handler) => work },
    },
    object: (definition: { handlers: Record<string, Handler> }) =>
      Object.assign(handlers, definition.handlers),
  }
  restateSessions(sdk as unknown as RestateLike, agents)
  return handlers
}

/** A handler call. It is abandoned where it waits for people or sleeps. */
function callOf(handler: string, place: Place, input: object): Promise<unknown> {
  return new Promise((resolve, reject) => {
    const never = new Promise(() => undefined)
    const leave = (word: string) => {
      resolve(word)
      return Object.assign(never, { orTimeout: () => never })
    }
    const context = {
      key: session,
      run: (_: string, step: () => Promise<unknown>) => step(),
      sleep: () => leave('sleeps'),
      awakeable: () => ({ id: 'awake', promise: leave('waits') }),
      resolveAwakeable: () => undefined,
      genericSend: () => undefined,
      get: () => Promise.resolve(null),
      set: () => undefined,
      clear: () => undefined,
    } as unknown as RestateContext
    const work = restateHandlers(listOf(place))[handler]
    if (!work) throw new Error(`The object has no handler ${handler}.`)
    work(context, input).then(resolve, reject)
  })
}

const restated = (
  of: string,
  does: Surface['does'],
  inputOf: (place: Place) => object,
  as?: string,
): Surface =>
  operator(`restateSessions.${of}`, does, (place) => callOf(of, place, inputOf(place)), {
    ...listed,
    ...(as !== undefined && { as }),
  })

const agentOf = ({ process: { kind } }: Place): string => (kind === 'other agent' ? 'support' : 'billing')

/** The hosts' actions, with SDKs that execute requests at once. */
export const hostSurfaces: Surface[] = [
  dbos('enqueue', 'begin', (place, own) =>
    own.enqueue({ session, input: 'Again.', turn: 2, agent: agentOf(place) }),
  ),
  dbos('answer', 'answer', ({ question }, own) =>
    own.answer(session, [{ type: 'approve', ...question, by: sender }]),
  ),
  dbos(
    'answer',
    'answer',
    ({ question }, own) => own.answer(session, [{ type: 'approve', ...question, by: sender, grant: {} }]),
    'an approval with a grant',
  ),
  dbos(
    'answer',
    'grant',
    (_place, own) => own.answer(session, [{ type: 'grant', tool: 'lend', when: {} } as never]),
    'a grant',
  ),
  dbos(
    'answer',
    'revoke',
    ({ grant }, own) => own.answer(session, [{ type: 'revoke', grant } as never]),
    'a revocation',
  ),
  dbos('enqueue', 'continue', (_place, own) => own.enqueue({ session })),
  restated('run', 'begin', (place) => ({ input: 'Again.', turn: 2, agent: agentOf(place) })),
  restated('run', 'continue', () => ({})),
  restated('send', 'answer', ({ question }) => ({ type: 'approve', ...question, by: sender })),
  restated('send', 'grant', () => ({ type: 'grant', tool: 'lend', when: {}, by: sender }), 'a grant'),
  restated('send', 'revoke', ({ grant }) => ({ type: 'revoke', grant, by: sender }), 'a revocation'),
  restated('send', 'stop', () => ({ type: 'cancel' })),
  restated('send', 'begin', () => ({ type: 'message', when: 'next', input: 'Again.' }), 'a queued message'),
  restated(
    'send',
    'steer',
    () => ({ type: 'message', when: 'now', input: 'Be quick.' }),
    'a message for now',
  ),
]
