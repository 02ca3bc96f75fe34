import type { AgentContext } from '../../machines/agent/context.js'
import { type AgentState, type PendingCall, isWorkState } from '../../machines/agent/run-result.js'
import type { Message } from '../../machines/agent/messages.js'
import { listAnswerableCalls } from '../../machines/agent/to-result.js'
import type { Agent } from '../core/agent/agent-options.js'
import { madeOf } from '../core/agent/made-of.js'
import type { Clock } from '../core/base/clock.js'
import { ConfigError, StatewrightError, UsageError } from '../core/base/errors.js'
import type { SessionStore } from '../core/sessions/store/store.js'
import type { RunInput } from '../core/sessions/history.js'
import type { UserInputMessage } from '../core/sessions/input.js'
import { answerAll, type CallAnswer, checkAnswers } from './call-answers.js'
import { joinedElsewhere, type Stood } from './elsewhere.js'
import { mostTries, nextTry } from './next-try.js'
import { finished, type Joined, joinedNow, joinedWhole } from './joined.js'
import { alreadySaid, inProgress, messageChanged, waitsForAnswers } from './not-now.js'
import { type AnyRun, type Caller, LiveRuns } from './live-runs.js'
import { clientIdOf, opensTurn, type Turn, turnOf } from './turn.js'

/** An agent of any output, tools and context; it has a store. */
export type ChatAgent = Pick<Agent, 'config' | 'replay' | 'tell' | 'watch'> & {
  /** What they want as options depends on what its tools want as `context`. */
  run(input: RunInput, options: never): AnyRun
  resume(sessionId: string, options: never): Promise<AnyRun>
}

/** A user's message from a page. */
export interface Said {
  content: UserInputMessage['content']
  /** As the page calls it: the same message is said once. */
  clientId: string | undefined
}

/** A session as it stands. */
export interface Conversation {
  messages: readonly Message[]
  pending: readonly PendingCall[]
  /** Calls that somebody has let run while others still wait. */
  approved: readonly string[]
  state: AgentState | null
}

interface Made {
  store: SessionStore
  clock: Clock
}

/** Those of one agent are known to every handler that serves it. */
const known = new WeakMap<object, Chats>()

/**
 * The sessions of an agent, as pages talk in them: a message is said once, however often it is sent, and everybody who
 * comes sees the same answer, from its log and then live. Whoever goes away stops nothing.
 *
 * @throws {ConfigError} `invalid_config` for an agent without a store
 */
export function chatsOf(agent: ChatAgent): Chats {
  const there = known.get(agent)
  if (there) return there
  if (typeof agent?.run !== 'function')
    throw new ConfigError('invalid_config', 'agent must be what createAgent() returns.', 'agent')
  const made = madeOf.get(agent)
  if (made?.store === undefined) {
    throw new ConfigError(
      'invalid_config',
      'The agent has no store, and what a page is shown comes from there: createAgent({ store: fileStore({ dir }) }).',
      'agent',
    )
  }
  const chats = new Chats(agent, { store: made.store, clock: made.parts.clock })
  known.set(agent, chats)
  return chats
}

export class Chats {
  readonly #agent: ChatAgent
  readonly #made: Made
  readonly #live = new LiveRuns()
  /** What is being done with a session now: one thing after the other. */
  readonly #doing = new Map<string, Promise<unknown>>()

  constructor(agent: ChatAgent, made: Made) {
    this.#agent = agent
    this.#made = made
  }

  /**
   * What the user says: it starts a run, or goes on with one that waits for it. A message that was said before is not said
   * again: its answer is joined.
   *
   * @throws {UsageError} `run_in_progress`, `waiting_for_answers`, `message_changed`, `already_said`
   */
  say(sessionId: string, said: Said, caller: Caller): Promise<Joined> {
    return this.#inTurn(sessionId, () => this.#say(sessionId, said, caller))
  }

  /**
   * Answers to calls that wait: all of them are checked before any is given.
   *
   * @throws {UsageError} `unknown_call`, `already_answered`, `stale_answer`
   */
  answer(sessionId: string, answers: readonly CallAnswer[], caller: Caller): Promise<Joined> {
    return this.#inTurn(sessionId, () => this.#answer(sessionId, answers, caller))
  }

  /**
   * The answer that is under way, from its beginning; null where none is. Of one that another process gives it is what the
   * log says. One whose process has died goes on here with `mayContinue`; otherwise it is watched, and waits.
   */
  attach(
    sessionId: string,
    caller: Caller,
    { mayContinue }: { mayContinue: boolean },
  ): Promise<Joined | null> {
    return this.#inTurn(sessionId, async () => {
      const live = this.#live.get(sessionId)
      if (live) return joinedWhole(live)
      const stood = await this.#standAt(sessionId)
      if (stood === null || !isAtWork(stood.context.state)) return null
      return mayContinue ? this.#goOn(sessionId, caller) : this.#look(sessionId, stood, null)
    })
  }

  /**
   * Lets a paused run go on, with something to tell the model where there is. `messages`: how many there are where it rests.
   *
   * @throws {UsageError} `already_answered` where it does not rest there
   */
  goOn(
    sessionId: string,
    { messages, steer }: { messages: number; steer?: string | undefined },
    caller: Caller,
  ): Promise<Joined> {
    return this.#inTurn(sessionId, async () => {
      const stood = this.#live.get(sessionId) ? null : await this.#stand(sessionId)
      if (stood?.state !== 'PAUSED' || stood.messages.length !== messages) {
        throw new UsageError(
          'already_answered',
          'It does not rest there any more: ask for the conversation as it is now.',
          sessionId,
        )
      }
      return this.#continue(sessionId, caller, { clientId: undefined }, (run) => {
        if (steer === undefined) run.resume()
        else run.steer(steer)
      })
    })
  }

  /** A session that is at rest, as an answer that tells no more; null where there is none. */
  async standing(sessionId: string): Promise<Joined | null> {
    const stood = await this.#stand(sessionId)
    return stood && finished(turnOf(stood))
  }

  /** Cancels the run of a session that has not ended. */
  stop(sessionId: string, caller: Caller): Promise<void> {
    return this.#inTurn(sessionId, async () => {
      const why = 'The user has stopped it.'
      const live = this.#live.get(sessionId)
      if (live) return live.run.cancel(why)
      try {
        await this.#agent.tell(sessionId, { type: 'cancel', why })
      } catch (error) {
        if (isCode(error, 'run_ended', 'unknown_session', 'nothing_to_resume')) return
        if (!isCode(error, 'no_inbox')) throw error
        // A store of one's own, in which nobody can be told anything: the run is taken up, and ended.
        const run = await this.#resume(sessionId, caller)
        run.cancel(why)
        await run.result
      }
    })
  }

  /** A session as it stands; null where there is none. */
  async read(sessionId: string): Promise<Conversation | null> {
    try {
      const { messages, run, snapshot } = await this.#agent.replay(sessionId)
      const { calls = [] } = (snapshot?.context as AgentContext | undefined) ?? {}
      const approved = calls.flatMap((call) => (call.approved && !call.result ? [call.id] : []))
      return { messages, pending: run?.pending ?? [], approved, state: run?.state ?? null }
    } catch (error) {
      if (isUnknown(error)) return null
      throw error
    }
  }

  async #say(sessionId: string, said: Said, caller: Caller, tries = 1): Promise<Joined> {
    const { clientId } = said
    const live = this.#live.get(sessionId)
    if (live && clientId !== undefined && live.clientIds.has(clientId)) return joinedWhole(live)
    const stood = await this.#stand(sessionId)
    const again = stood && (await this.#saidBefore(sessionId, stood, said, caller))
    if (again) return again
    if (live) throw inProgress(sessionId)
    switch (stood?.state) {
      case 'RUNNING':
      case 'WAITING_FOR_TOOL':
        throw inProgress(sessionId)
      case 'WAITING_FOR_INPUT':
        if (stood.reason !== 'message') throw waitsForAnswers(listAnswerableCalls(stood))
        return this.#continue(sessionId, caller, said, (run) => {
          run.reply([messageOf(said)])
        })
      case 'PAUSED':
        return this.#continue(sessionId, caller, said, (run) => {
          run.steer(textOf(said))
        })
      default:
        return this.#begin(sessionId, said, caller, tries)
    }
  }

  async #begin(sessionId: string, said: Said, caller: Caller, tries: number): Promise<Joined> {
    const run = this.#agent.run([messageOf(said)], { session: sessionId, context: caller.context } as never)
    const live = this.#live.follow(run, null, caller, said.clientId)
    this.#live.untilRest(live)
    try {
      await run.started
    } catch (error) {
      // Another process may have been told the same a moment ago, or has just ended what it did there.
      if (!isTaken(error) || tries >= mostTries) throw error
      await nextTry(this.#made.clock)
      return this.#say(sessionId, said, caller, tries + 1)
    }
    return joinedWhole(live)
  }

  async #saidBefore(
    sessionId: string,
    stood: AgentContext,
    { clientId, content }: Said,
    caller: Caller,
  ): Promise<Joined | null> {
    if (clientId === undefined) return null
    const opening = stood.messages.filter(opensTurn)
    const said = opening.find((message) => clientIdOf(message) === clientId)
    if (!said) return null
    if (said.data?.['withheld'] !== true && textOf({ content }) !== textOf(said)) {
      throw messageChanged(clientId)
    }
    if (said !== opening.at(-1)) {
      throw alreadySaid(clientId)
    }
    const live = this.#live.get(sessionId)
    if (live) return joinedWhole(live)
    return isAtWork(stood.state) ? this.#goOn(sessionId, caller) : finished(turnOf(stood))
  }

  async #answer(sessionId: string, answers: readonly CallAnswer[], caller: Caller): Promise<Joined> {
    const live = this.#live.get(sessionId)
    if (live) {
      answerAll(live.run, checkAnswers(contextOf(live.run), answers))
      return joinedNow(live)
    }
    const given = checkAnswers((await this.#stand(sessionId)) ?? undefined, answers)
    const run = await this.#resume(sessionId, caller)
    const resumed = this.#live.follow(run, turnHere(run), caller)
    try {
      answerAll(run, given)
    } finally {
      this.#live.untilRest(resumed)
    }
    return joinedNow(resumed, { isContinued: true })
  }

  async #continue(
    sessionId: string,
    caller: Caller,
    { clientId }: Pick<Said, 'clientId'>,
    say: (run: AnyRun) => void,
  ): Promise<Joined> {
    const run = await this.#resume(sessionId, caller)
    const turn = run.state === 'PAUSED' ? turnHere(run) : null
    say(run)
    const live = this.#live.follow(run, turn, caller, clientId)
    this.#live.untilRest(live)
    return turn === null ? joinedWhole(live) : joinedNow(live, { isContinued: true })
  }

  /** A run that is at work: it goes on here, unless another process has it, or it is another agent's: then it is watched. */
  async #goOn(sessionId: string, caller: Caller): Promise<Joined> {
    try {
      return await this.#bringBack(sessionId, caller)
    } catch (error) {
      const isStranded = isCode(error, 'stranded')
      const stood = isStranded || isCode(error, 'session_busy') ? await this.#standAt(sessionId) : null
      if (stood === null) throw error
      return isAtWork(stood.context.state)
        ? this.#look(sessionId, stood, isStranded ? null : caller)
        : finished(turnOf(stood.context))
    }
  }

  /** `caller`: who continues it once no process has it; null: it is only watched. */
  #look(sessionId: string, stood: Stood, caller: Caller | null): Joined {
    const takeUp = (by: Caller): Promise<void> =>
      this.#inTurn(sessionId, async () => {
        if (this.#live.get(sessionId) || (await this.#made.store.get(sessionId))?.holder !== null) return
        const stood = await this.#stand(sessionId)
        if (stood && isAtWork(stood.state)) await this.#bringBack(sessionId, by)
      })
    return joinedElsewhere(stood, {
      clock: this.#made.clock,
      watch: (options) => this.#agent.watch(sessionId, options),
      ...(caller && { takeUp: () => takeUp(caller) }),
    })
  }

  /** Brings back a run that was at work when its process ended. */
  async #bringBack(sessionId: string, caller: Caller): Promise<Joined> {
    const run = await this.#resume(sessionId, caller)
    const turn = turnHere(run)
    if (turn && !isAtWork(turn.state)) return finished(turn)
    const live = this.#live.follow(run, turn, caller, turn?.clientId)
    this.#live.untilRest(live)
    return joinedWhole(live)
  }

  /** At a rest, whoever has written it may have the session a moment longer. */
  async #resume(sessionId: string, caller: Caller): Promise<AnyRun> {
    for (let tries = 1; ; tries += 1) {
      try {
        return await this.#agent.resume(sessionId, { context: caller.context } as never)
      } catch (error) {
        if (!isCode(error, 'session_busy') || tries >= mostTries) throw error
        const stood = await this.#stand(sessionId)
        if (stood && isAtWork(stood.state)) throw error
        await nextTry(this.#made.clock)
      }
    }
  }

  async #stand(sessionId: string): Promise<AgentContext | null> {
    return (await this.#standAt(sessionId))?.context ?? null
  }

  async #standAt(sessionId: string): Promise<Stood | null> {
    try {
      const { seq, snapshot } = await this.#agent.replay(sessionId)
      return snapshot && { seq, context: snapshot.context as AgentContext }
    } catch (error) {
      if (isUnknown(error)) return null
      throw error
    }
  }

  /** Of several requests for one session each finds what the one before it has done. */
  async #inTurn<Value>(sessionId: string, act: () => Promise<Value>): Promise<Value> {
    const before = this.#doing.get(sessionId)
    const doing = (before ?? Promise.resolve()).then(act, act)
    this.#doing.set(sessionId, doing)
    try {
      return await doing
    } finally {
      if (this.#doing.get(sessionId) === doing) this.#doing.delete(sessionId)
    }
  }
}

function contextOf(run: Pick<AnyRun, 'snapshot'>): AgentContext | undefined {
  return (run.snapshot() as { context?: AgentContext } | undefined)?.context
}

function turnHere(run: AnyRun): Turn | null {
  const context = contextOf(run)
  return context ? turnOf(context) : null
}

function messageOf({ content, clientId }: Said): UserInputMessage {
  return { content, ...(clientId !== undefined && { clientId }) }
}

/** What of a message is text. */
function textOf({ content }: { content: string | readonly { type: string; text?: unknown }[] }): string {
  if (typeof content === 'string') return content
  return content.flatMap(({ type, text }) => (type === 'text' ? [String(text)] : [])).join('\n')
}

function isAtWork(state: AgentState | null): boolean {
  return state === null || isWorkState(state)
}

const isCode = (error: unknown, ...codes: string[]): boolean =>
  error instanceof StatewrightError && codes.includes(error.code)

const isUnknown = (error: unknown): boolean => isCode(error, 'unknown_session')

const isTaken = (error: unknown): boolean => isCode(error, 'session_busy', 'unfinished_run')
