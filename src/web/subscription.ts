import { valueOr } from '../core/base/maybe-promise.js'
import type { AgentEvent } from '../../machines/agent/announcements.js'
import type { AgentContext } from '../../machines/agent/context.js'
import { isRequest, listAnswerableCalls } from '../../machines/agent/questions.js'
import { isFinalState } from '../../machines/agent/run-result.js'
import { expectArgument, objectRule, optionsRule } from '../core/base/values.js'
import type { BranchPoint } from '../core/sessions/branch-tree.js'
import type { Agent } from '../core/agent/agent-options.js'
import type { MessageTarget } from '../core/run/apply-message.js'
import type { Run } from '../core/run/run.js'
import type { RunInput } from '../core/sessions/input-history.js'
import { toApprovalId } from './approval-id.js'
import type { AccessGrant } from './authorize.js'
import { type Turn, toTurn } from './chat-turn.js'
import type { CheckedExpose, EventFailure } from './exposure.js'
import { createReplayBuffer, type ReplayBuffer, type ReplayReader } from './replay-buffer.js'
import type { RunHooks } from './run-hooks.js'

/** An agent with a store, regardless of its output, tools and context. */
export type ChatAgent = Pick<Agent, 'config' | 'replay' | 'send' | 'watch' | 'selectBranch'> & {
  /** The type of the options depends on the `context` that the agent's tools require. */
  run(input: RunInput, options: never): AnyRun
  resume(sessionId: string, options: never): Promise<AnyRun>
  branch(sessionId: string, options: never): AnyRun
}

export type AnyRun = MessageTarget &
  Pick<Run, 'id' | 'sessionId' | 'state' | 'events$' | 'started' | 'result' | 'snapshot'>

export type WhenBusy = 'queue' | 'steer' | 'refuse'

export interface Caller extends AccessGrant {
  /** Receives each failure of the run up to its next rest. Never throws. */
  report(failure: EventFailure, run: { id: string | null; sessionId: string }): void
  hooks: RunHooks
  expose: CheckedExpose
  whenBusy: WhenBusy
}

export function toCallerOptions({ context, tags, by }: AccessGrant) {
  return { context, ...(tags && { tags }), ...(by && { by }) }
}

export interface LiveRun {
  run: AnyRun
  /** The run's events since this process started or resumed the run. */
  buffer: ReplayBuffer
  /** The turn before the events in `buffer`. Null for a run that started here. */
  turn: Turn | null
  /** The page's ids for the messages that the run received here. */
  clientIds: Set<string>
  caller: Caller
  /** Whether the run has been active since this process started or resumed it. */
  hasWorked: boolean
  point?: BranchPoint | undefined
  closing?: Promise<void> | undefined
}

export interface Subscription {
  /** What precedes the answer. Read only by pages that compare it with their messages. */
  readPast: () => Past
  /** The answer before the reader's first event. Null if the reader starts with the run. */
  turn: Omit<Turn, 'before' | 'ends'> | null
  /** Whether the page also needs `turn`, because it subscribed late or was reloaded. */
  showsTurn: boolean
  /** Approval requests (by `toApprovalId`) that were answered in the meantime. */
  answeredRequests?: ReadonlySet<string>
  reader: ReplayReader
  /** Masks an event for the page. Null drops the event. */
  maskEvent?: (event: AgentEvent) => AgentEvent | null
  /** The point where the answer diverges from other branches. */
  point?: BranchPoint | undefined
  /** The response stays open until this promise settles. */
  closing?: Promise<void> | undefined
  unsubscribe?(): void
}

type Past = Pick<Turn, 'before' | 'ends'>

/** For the page whose request has just started or resumed the run, so that all events in its buffer are new. */
export function subscribeToNew(live: LiveRun): Subscription {
  const { turn, buffer, point, closing } = live
  const readPast = () => readPastOf(live)
  return { readPast, turn, showsTurn: false, reader: buffer.createReader(), point, closing }
}

/** For a page without the answer so far. */
export function subscribeFromStart(live: LiveRun): Subscription {
  return { ...subscribeToNew(live), showsTurn: true, answeredRequests: listAnsweredRequests(live) }
}

/** For a page that has the answer so far. */
export function subscribeFromNow(live: LiveRun): Subscription {
  return { ...subscribeToNew(live), reader: live.buffer.createReader('now'), point: undefined }
}

/** A subscription to a recorded answer. `buffer` has the events that follow it. */
export function subscribeToTurn(turn: Turn, buffer: ReplayBuffer, showsTurn = true): Subscription {
  return { readPast: () => turn, turn, showsTurn, reader: buffer.createReader() }
}

export function createFinishedSubscription(turn: Turn): Subscription {
  const buffer = createReplayBuffer()
  buffer.end()
  return subscribeToTurn(turn, buffer)
}

export function findContext(run: Pick<AnyRun, 'snapshot'>): AgentContext | undefined {
  return (run.snapshot() as { context?: AgentContext } | undefined)?.context
}

export function findTurn(run: AnyRun): Turn | null {
  const context = findContext(run)
  return context ? toTurn(context) : null
}

/** A run that started here has a context once its session has been read. */
function readPastOf({ run, turn }: LiveRun): Past {
  if (turn) return turn
  const context = findContext(run) as AgentContext
  return { before: toTurn(context).before, ends: context.turnEnds ?? [] }
}

function listAnsweredRequests({ run, turn, buffer }: LiveRun): ReadonlySet<string> {
  const requests = new Set<string>((turn?.pending ?? []).map(toApprovalId))
  for (const entry of buffer.entries)
    if ('event' in entry && entry.event && isRequest(entry.event)) requests.add(toApprovalId(entry.event))
  if (requests.size === 0) return requests
  for (const open of listAnswerableCalls(findContext(run) as AgentContext))
    requests.delete(toApprovalId(open))
  return requests
}

interface RunSegment {
  turn: Turn | null
  buffer: ReplayBuffer
}

const segmentByRun = new WeakMap<AnyRun, RunSegment>()

export function expectRun(name: string, run: AnyRun, options: object): void {
  const rule = objectRule(['events$', Symbol.asyncIterator], 'a run: the return value of agent.run(…)')
  expectArgument(`${name}(run)`, run, rule)
  expectArgument(`${name}(run, options)`, options, optionsRule)
}

/** Without a handler, up to the next rest. A second call after an answer yields the events since that rest. */
export function subscribeToRun(run: AnyRun): Subscription {
  const segment = segmentByRun.get(run) ?? followRun(run)
  const { turn, buffer } = segment
  if (turn && isFinalState(turn.state)) return createFinishedSubscription(turn)
  const startNextSegment = (): void => {
    if (segmentByRun.get(run) !== segment) return
    buffer.end()
    segmentByRun.set(run, { turn: findStartedTurn(run), buffer: createReplayBuffer() })
  }
  run.result.then(startNextSegment, startNextSegment)
  if (turn) return subscribeToTurn(turn, buffer, false)
  const readPast = () => ({ before: [], ends: [] })
  return { readPast, turn, showsTurn: false, reader: buffer.createReader() }
}

function followRun(run: AnyRun): RunSegment {
  const first: RunSegment = { turn: findStartedTurn(run), buffer: createReplayBuffer() }
  segmentByRun.set(run, first)
  run.events$.subscribe({
    next: (event) => segmentByRun.get(run)?.buffer.push(event),
    // The call that started the run rejects with this error.
    error: () => first.buffer.end(),
  })
  return first
}

function findStartedTurn(run: AnyRun): Turn | null {
  const context = findStartedContext(run)
  return context?.state ? toTurn(context) : null
}

/** Undefined while the session is still being read. */
export function findStartedContext(run: Pick<AnyRun, 'snapshot'>): AgentContext | undefined {
  return valueOr(() => findContext(run), undefined)
}
