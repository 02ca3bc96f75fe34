import { isFinalState } from '../../machines/agent/run-result.js'
import type { AgentContext, ControlEvent } from '../../machines/agent/context.js'
import { listLate } from '../../machines/agent/due-times.js'
import type { Principal } from '../../machines/agent/principal.js'
import type { SentBy } from '../core/sessions/principal.js'
import type { Agent } from '../core/agent/agent-options.js'
import type { Message } from '../../machines/agent/messages.js'
import { formatMessageText } from '../core/format/format-words.js'
import { createDefinitionFactory, internalsByAgent } from '../core/agent/agent-internals.js'
import { type AgentParts, getSpeakerTools } from '../core/live/agent-parts.js'
import { acceptsDefinition, type AgentLabel, describeAgent } from '../core/sessions/agent-definition.js'
import { strandedError } from '../core/sessions/session-errors.js'
import type { FoldedSession } from '../core/sessions/fold-session.js'
import { StatewrightError, UsageError } from '../core/base/errors.js'
import { getAwaitedCall, parseEditedArguments } from '../core/run/answer-events.js'
import { applyMessage, checkAnswer } from '../core/run/apply-message.js'
import { parseInboxMessage } from '../core/sessions/inbox/session-message.js'
import { systemClock } from '../core/base/clock.js'
import type { SessionStore } from '../core/sessions/store/store.js'
import { StoreError } from '../core/sessions/store/store-error.js'
import type { ToolSet } from '../core/tools/tool-set.js'
import type { ForkEdit } from '../core/run/edit-fork.js'
import type { AttachableRun, AttachedRun, AttachedRuns } from './attached-runs.js'
import { EmbeddedActors, EmbeddedRun, embeddedNote } from './embedded-actors.js'
import type { SessionFold } from './session-fold.js'
import type { SessionLibrary } from './session-library.js'
import type { Answer, Done, ForkRequest, MomentView, TextEdit } from './protocol.js'
import type { MarkRequest } from './requests.js'
import { findGap, getWords, toShownText } from './shown-values.js'
import { findEffectiveInstructions } from './session-step.js'

export type StudioAgent = Pick<Agent, 'config' | 'fork'> & {
  /** The options depend on the `context` type of the agent's tools. */
  resume(sessionId: string, options: never): Promise<AttachableRun>
  send?: Agent['send']
}

interface ActionParts {
  agent?: StudioAgent | undefined
  context?: unknown
  by?: Principal | undefined
  library: SessionLibrary
  runs: AttachedRuns
  embedded?: EmbeddedActors
  store?: Pick<SessionStore, 'setMark' | 'inbox'>
}

/** Applies user actions to sessions through the agent. Every refusal is a StatewrightError. */
export class SessionActions {
  readonly #parts: ActionParts
  readonly #runs: AttachedRuns
  readonly #embedded: EmbeddedActors
  /** Undefined for an agent that `createAgent` has not created. */
  readonly #internals: ReturnType<typeof internalsByAgent.get>
  #ownDefinition: ReturnType<typeof createDefinitionFactory> | undefined

  constructor(parts: ActionParts) {
    this.#parts = parts
    this.#internals = parts.agent && internalsByAgent.get(parts.agent)
    this.#runs = parts.runs
    this.#embedded = parts.embedded ?? new EmbeddedActors()
  }

  get readOnly(): string | null {
    if (this.#parts.agent) return null
    const how = 'startStudio({ store, agent }), or statewright studio --agent MODULE.'
    return this.#runs.isEmpty
      ? `Read-only without an agent. Start it with ${how}`
      : `Only live runs in this program can be answered. To answer other runs, start the studio with an agent: ${how}`
  }

  /** Why a session can be neither forked nor (unless attached) answered, or null. */
  findRefusal(id: string): string | null {
    return this.#embedded.has(id) ? embeddedNote : this.readOnly
  }

  describeOtherAgent(id: string, { now, models }: Pick<SessionFold, 'now' | 'models'>): string | null {
    const { definition } = now.session
    const internals = this.#internals
    if (!internals || definition === null || this.#embedded.has(id)) return null
    this.#ownDefinition ??= createDefinitionFactory(internals.parts)
    if (this.#ownDefinition(internals.label).hash === definition.hash) return null
    const name = definition.name === undefined ? '' : ` '${toShownText(describeAgent(definition), 200)}'`
    const own = internals.parts.model.model
    // The definition is a hash, so that only the models can be compared.
    const [by, here] =
      models.size === 0 || models.has(own)
        ? ['', '']
        : [` (${toShownText([...models].join(', '), 200)})`, ` (${own})`]
    return (
      `A different agent${name}${by} started this run. Resume, Approve and What if use this studio's agent${here}, ` +
      'which has different instructions, tools or models.'
    )
  }

  findTools(id: string): ToolSet | undefined {
    const agent: (StudioAgent & { machine?: unknown }) | undefined = this.#parts.agent
    if (agent === undefined || (this.#embedded.has(id) && !this.#embedded.isOf(id, agent.machine)))
      return undefined
    return this.#internals?.parts.tools
  }

  findParts({ definition }: Pick<FoldedSession, 'definition'>): AgentParts | undefined {
    return acceptsDefinition(this.#label, definition) ? this.#internals?.parts : undefined
  }

  /** Undefined if the agent may not continue the session. */
  findInstructions(session: Pick<FoldedSession, 'definition'>): string | undefined {
    const parts = this.findParts(session)
    if (!parts?.instructions) return undefined
    const { instructions, skillIndex = '' } = parts
    // The skill index is appended to any instructions.
    const isIndexed = skillIndex !== '' && instructions.endsWith(skillIndex)
    return (isIndexed ? instructions.slice(0, -skillIndex.length) : instructions).trim() || undefined
  }

  /** `isHeld` means that a process holds the session's lease. */
  listPossible(
    { run, definition }: Pick<FoldedSession, 'run' | 'definition'>,
    { id, isHeld }: { id: string; isHeld: boolean },
  ): MomentView['actions'] {
    const context = run?.context ?? null
    const isReadOnly = !this.#parts.agent || this.#embedded.has(id)
    if (context === null || (isReadOnly && !this.#runs.has(id))) return []
    // An agent that did not start the run can only cancel it.
    const isStranded = !isHeld && !this.#runs.has(id) && !acceptsDefinition(this.#label, definition)
    if (isStranded) return hasEnded(context) || !this.#canSend ? [] : ['cancel']
    switch (context.state) {
      case 'WAITING_FOR_INPUT': {
        const ends: Answer['type'][] = context.pausing ? ['resume', 'cancel'] : ['cancel']
        if (context.reason === 'message') return ['reply', ...ends]
        return context.reason === 'approval' ? ['approve', 'reject', ...ends] : ['toolOutput', ...ends]
      }
      case 'PAUSED':
        return ['resume', 'steer', 'cancel']
      case null:
      case 'RUNNING':
      case 'WAITING_FOR_TOOL':
        if (this.#runs.has(id) || (isHeld && this.#canSend))
          return ['approve', 'reject', 'toolOutput', context.pausing ? 'resume' : 'pause', 'steer', 'cancel']
        return isHeld ? [] : ['resume', 'cancel']
      default:
        return []
    }
  }

  /** A grant can outlive its run, and revoking it needs only the store. */
  canRevoke(id: string): boolean {
    return this.#runs.get(id) !== undefined || (this.#canSend && !this.#embedded.has(id))
  }

  async listUnread(id: string, { inbox }: Pick<FoldedSession, 'inbox'>): Promise<ControlEvent[]> {
    if (this.#embedded.has(id)) return []
    const messages = (await this.#parts.store?.inbox?.read(id, inbox)) ?? []
    return messages.flatMap((found) => (found.message > inbox ? (parseInboxMessage(found) ?? []) : []))
  }

  async applyAnswer(id: string, answer: Answer): Promise<Done> {
    if (answer.type === 'revoke') return this.#revokeGrant(id, answer.grant)
    const { session } = (await this.#parts.library.readFold(id)).now
    const context = session.run?.context
    const isLate = context !== undefined && hasExpired(context)
    const isHeld = !this.#runs.get(id) && (await this.#parts.library.findRow(id))?.holder != null
    const isRemote = isHeld && this.#canSend
    if (answer.type === 'approve' && answer.grant && this.#embedded.has(id))
      throw new UsageError(
        'invalid_input',
        'An embedded actor does not accept grants. Approve without one.',
        'grant',
      )
    // Checked before the run is resumed, because a late answer must not start it.
    this.#checkAnswer(context, answer, isRemote || this.#runs.has(id))
    await this.#checkEdit(id, context, answer)
    // Cancelling needs only the store, so the run is not resumed.
    const isSent = isRemote || (answer.type === 'cancel' && !this.#runs.get(id) && this.#canSend)
    if (isSent && (await this.#sendToOtherProcess(id, answer))) return { sessionId: id }
    const run = this.#runs.get(id) ?? (await this.#resumeRun(await this.#getAgent(id), id))
    // Resuming continues an interrupted run and ends an expired question.
    if (answer.type !== 'resume' || (run.state === 'PAUSED' && !isLate) || context?.pausing)
      await sendAnswer(run, { ...answer, by: this.#parts.by })
    return { sessionId: id }
  }

  async #revokeGrant(id: string, grant: string): Promise<Done> {
    const run = this.#runs.get(id)
    if (run) await sendAnswer(run, { type: 'revoke', grant, by: this.#parts.by })
    else {
      const agent = await this.#getAgent(id)
      if (!agent.send) throw new StatewrightError('read_only', 'This agent cannot send messages.', 'agent')
      await agent.send(id, { type: 'revoke', grant, by: this.#parts.by })
    }
    return { sessionId: id }
  }

  /** Returns false if the store has no inbox. */
  async #sendToOtherProcess(id: string, answer: RunAnswer): Promise<boolean> {
    const agent = await this.#getAgent(id)
    const receipt = await agent.send?.(id, { ...answer, by: this.#parts.by })
    if (receipt?.status !== 'waiting') return receipt !== undefined
    // A resumed run reads its inbox first.
    await this.#resumeRun(agent, id)
    return true
  }

  get #label(): AgentLabel | undefined {
    return this.#internals?.label
  }

  get #canSend(): boolean {
    return this.#parts.agent?.send !== undefined && this.#internals?.store?.inbox !== undefined
  }

  #checkAnswer(context: AgentContext | undefined, answer: RunAnswer, isWorkedOn: boolean): void {
    switch (answer.type) {
      case 'approve':
      case 'reject':
      case 'toolOutput':
        checkAnswer(context, { ...answer, by: this.#parts.by })
        return
      case 'reply':
        if (context?.state === 'WAITING_FOR_INPUT' && context.reason === 'message') return
        throw wrongStateError('it is not waiting for a message', context)
      case 'resume':
        if (
          context?.state !== 'WAITING_FOR_INPUT' ? !hasEnded(context) : context.pausing || hasExpired(context)
        )
          return
        throw wrongStateError('there is nothing to resume', context)
      case 'pause':
        if (isWorkedOn && !hasEnded(context)) return
        throw wrongStateError('only a run that is active in a process can be paused', context)
      default:
        if (hasEnded(context)) throw wrongStateError('it has ended', context)
    }
  }

  /** Validates edited arguments against the schema, so that the user sees the problem. */
  async #checkEdit(id: string, context: AgentContext | undefined, answer: RunAnswer): Promise<void> {
    if (answer.type !== 'approve' || answer.editedInput === undefined) return
    const tools = this.findTools(id)
    if (!tools && this.#embedded.has(id)) {
      const text =
        "The arguments cannot be validated, because the studio does not know this actor's tools. Approve the call unchanged, or " +
        'start the studio with its agent: startStudio({ agent }).'
      throw new UsageError('invalid_input', text, answer.callId)
    }
    if (!tools) return
    const call = getAwaitedCall(context, answer.callId, 'approval', answer)
    checkGaps(answer.editedInput, call.arguments, call.callId)
    const known = getSpeakerTools(tools, context?.speaker)
    const problem = await parseEditedArguments(answer.editedInput, call, known).problem
    if (problem) throw problem
  }

  async #resumeRun(agent: StudioAgent, id: string): Promise<AttachableRun> {
    const run = await agent.resume(id, { context: this.#parts.context } as never)
    this.#runs.attach(run, { isOurs: true })
    await run.started
    return run
  }

  /**
   * Requires the same rights as an answer.
   * @throws {StatewrightError} `read_only`, `no_marks`
   * @throws {UsageError} `stranded`, `invalid_option`
   */
  async markStep(id: string, { seq, mark, note }: MarkRequest): Promise<Done> {
    if (this.#embedded.has(id)) throw new StatewrightError('read_only', embeddedNote, id)
    if (!this.#runs.has(id)) {
      await this.#getAgent(id)
      const { definition } = (await this.#parts.library.readFold(id)).now.session
      const isHeld = (await this.#parts.library.findRow(id))?.holder != null
      if (!isHeld && !acceptsDefinition(this.#label, definition))
        throw strandedError(id, definition, [this.#label])
    }
    if (!this.#parts.store?.setMark) {
      const text =
        'This store does not support marks. Use memoryStore, fileStore or postgresStore, or add a method setMark(id, seq, mark) to your store.'
      throw new StatewrightError('no_marks', text, 'store')
    }
    const stepMark = mark === null ? null : { seq, mark, note, at: systemClock.now() }
    if (!(await this.#parts.store.setMark(id, seq, stepMark)))
      throw new UsageError('invalid_option', `Session '${id}' has no record ${seq} to mark.`, 'seq')
    return { sessionId: id }
  }

  async fork(id: string, { at, edit, run, askFirst, decision }: ForkRequest): Promise<Done> {
    const agent = await this.#getAgent(id)
    const session = await this.#parts.library.readAt(id, at)
    if (run) {
      const { definition } = session
      if (!acceptsDefinition(this.#label, definition)) throw strandedError(id, definition, [this.#label])
      if (session.run?.status !== 'active') {
        const text = `No run is active at record ${at}, so a fork from there has no run to resume. Fork without running it, or fork from an earlier record.`
        throw new UsageError('nothing_to_resume', text, id)
      }
    }
    if (decision) {
      if (!run)
        throw new UsageError('invalid_input', 'A decision needs a run. Set run in the fork request.', 'run')
      const context = session.run?.context
      const { fingerprint } = getAwaitedCall(context, decision.callId, 'approval')
      await this.#checkEdit(id, context, { ...decision, fingerprint })
    }
    const sessionId = await agent.fork(id, at, {
      ...(edit && { edit: this.#createEdit(session, edit) }),
      ...(askFirst && { askFirst }),
      context: this.#parts.context,
    })
    if (run) {
      const forked = await this.#resumeRun(agent, sessionId)
      if (decision) applyMessage(forked, { ...decision, by: this.#parts.by })
    }
    return { sessionId }
  }

  /**
   * The agent that acts on a session. The agent's store may differ from the studio's store.
   * @throws {StatewrightError} `read_only`
   * @throws {StoreError} `unknown_session`
   */
  async #getAgent(id: string): Promise<StudioAgent> {
    if (this.#embedded.has(id)) throw new StatewrightError('read_only', embeddedNote, id)
    const { agent, library } = this.#parts
    if (!agent) throw new StatewrightError('read_only', this.readOnly ?? '', 'agent')
    const store = this.#internals?.store
    const [shown, own] = await Promise.all([library.findRow(id), store?.get(id)])
    if (store === undefined || shown === null || own?.createdAt === shown.createdAt) return agent
    const text = `Session '${id}' is not in the agent's store, which differs from the studio's store. Pass the agent's store to the studio, or omit store.`
    throw new StoreError('unknown_session', text, id)
  }

  /** Keeps the other parts of a message, such as pictures. */
  #createEdit(session: FoldedSession, edit: TextEdit): ForkEdit {
    const { messages } = session.run?.context ?? session.state
    if ('instructions' in edit) {
      const effective = findEffectiveInstructions(session, this.findInstructions(session))
      checkGaps(edit.instructions, effective?.text ?? '', 'instructions')
      return edit
    }
    if (!('message' in edit)) {
      const call = session.run?.context.calls.find((one) => one.id === edit.call)
      if ('result' in edit)
        checkGaps(edit.result, call?.result?.content ?? findResultText(messages, edit.call), edit.call)
      else checkGaps(edit.arguments, call?.arguments ?? '', edit.call)
      return edit
    }
    const message = messages.find((one) => one.id === edit.message)
    if (message) checkGaps(edit.content, getWords(message), edit.message)
    const parts = message?.role === 'user' && Array.isArray(message.content) ? message.content : []
    const others = parts.filter((part) => part.type !== 'text')
    if (others.length === 0) return edit
    return { message: edit.message, content: [{ type: 'text', text: edit.content }, ...others] }
  }
}

function sendAnswer(run: AttachedRun, answer: Answer & SentBy): void | Promise<void> {
  if (run instanceof EmbeddedRun) return run.send(answer)
  return answer.type === 'revoke' ? run.revoke(answer, answer) : applyMessage(run, answer)
}

function findResultText(messages: readonly Message[], callId: string): string {
  const result = messages.findLast((one) => one.role === 'tool' && one.tool_call_id === callId)
  return result ? formatMessageText(result) : ''
}

/** @throws {UsageError} `invalid_input` if only part of the text was shown, because an edit would lose the rest */
function checkGaps(edited: unknown, before: string, subject: string): void {
  const text = typeof edited === 'string' ? edited : (JSON.stringify(edited) ?? '')
  const gap = findGap(text, before)
  if (gap !== null) throw new UsageError('invalid_input', gap, subject)
}

type RunAnswer = Exclude<Answer, { type: 'revoke' }>

function hasEnded(context: AgentContext | undefined): boolean {
  return context === undefined || isFinalState(context.state)
}

/** Whether a question from a waiting run has expired. */
function hasExpired(context: AgentContext): boolean {
  return context.state === 'WAITING_FOR_INPUT' && listLate(context, systemClock.now()).length > 0
}

function wrongStateError(why: string, context: AgentContext | undefined): UsageError {
  const state = context?.state ?? 'not started'
  return new UsageError('wrong_state', `The run is ${state}: ${why}.`, context?.sessionId)
}
