import type { AgentEvent } from '../../machines/agent/announcements.js'
import { isRestState } from '../../machines/agent/run-result.js'
import { isOfCall } from '../web/approval-id.js'
import { CallNames } from './agui-messages.js'
import type { PageMessages } from './page-messages.js'
import { AgentOutput } from './agent-output.js'

type ChildEvent = Extract<AgentEvent, { type: 'child_event' }>

/** A sub-agent at work. */
interface SubAgent {
  /** Its run id. */
  id: string
  output: AgentOutput
  rests: boolean
  failure: { message: string; code: string } | null
}

/** The sub-agents of a run. Each is announced with its first event, and closed once. */
export class PageSubAgents {
  readonly #page: PageMessages
  readonly #lead: AgentOutput
  /** By call id, in the order of their start. */
  readonly #members = new Map<string, SubAgent>()
  readonly #closed = new Set<string>()

  constructor(page: PageMessages, lead: AgentOutput) {
    this.#page = page
    this.#lead = lead
  }

  /** The run id of the sub-agent that executes this call. */
  findRunId(callId: string): string | undefined {
    return this.#members.get(callId)?.id
  }

  handleEvent({ callId, path, event, at }: ChildEvent): void {
    if (this.#closed.has(event.runId)) return
    const member = this.#members.get(callId) ?? this.#announce(callId, path.at(-1) ?? '', event.runId, at)
    switch (event.type) {
      case 'state_changed':
        member.rests = isRestState(event.to)
        return
      case 'error':
        member.failure = { message: event.message, code: event.code }
        return
      case 'run_ended':
        if (event.state === 'CANCELLED') member.failure = { message: 'It was cancelled.', code: 'cancelled' }
        return this.#close(callId, at)
      default:
        member.output.handleEvent(event)
    }
  }

  /** The page's name of a call, of the agent or of a sub-agent. */
  getCallName(callId: string): string {
    const [above, member] = this.#findSubAgent(callId)
    return member ? member.output.getCallName(callId.slice(above.length + 1)) : this.#lead.getCallName(callId)
  }

  /** The sub-agent that a call belongs to. */
  findOwner(callId: string): string | undefined {
    return this.#findSubAgent(callId)[1]?.id
  }

  /** Closes the sub-agents of a call that has its result. */
  closeCall(callId: string, at: number): void {
    this.#closeAll((id) => isOfCall(id, callId), at)
  }

  /** Closes all sub-agents. `asks`: the interrupt ids of each sub-agent's calls. */
  end(at: number, asks: ReadonlyMap<string, string[]>): void {
    this.#closeAll(() => true, at, asks)
  }

  #announce(callId: string, name: string, id: string, timestamp: number): SubAgent {
    const [, above] = this.#findSubAgent(callId)
    const parentToolCallId = this.getCallName(callId)
    const prefix = { subagentRunId: id, messages: `${id}.`, calls: `${parentToolCallId}/` }
    const output = new AgentOutput(this.#page, prefix, new CallNames())
    const member: SubAgent = { id, output, rests: false, failure: null }
    this.#members.set(callId, member)
    this.#page.emit({
      timestamp,
      type: 'SUBAGENT_STARTED',
      subagentRunId: id,
      name,
      parentToolCallId,
      ...(above && { parentSubagentRunId: above.id }),
    })
    return member
  }

  /** The innermost sub-agent of a call. Call ids may contain slashes themselves. */
  #findSubAgent(callId: string): [string, SubAgent | undefined] {
    let found: [string, SubAgent | undefined] = ['', undefined]
    for (const [id, member] of this.#members) {
      if (callId.startsWith(`${id}/`) && id.length >= found[0].length) found = [id, member]
    }
    return found
  }

  #closeAll(isMeant: (callId: string) => boolean, at: number, asks?: ReadonlyMap<string, string[]>): void {
    for (const callId of [...this.#members.keys()].toReversed())
      if (isMeant(callId)) this.#close(callId, at, asks)
  }

  #close(callId: string, timestamp: number, asks?: ReadonlyMap<string, string[]>): void {
    const member = this.#members.get(callId)
    if (!member) return
    const { id: subagentRunId, output, rests, failure } = member
    output.end(timestamp)
    this.#members.delete(callId)
    this.#closed.add(subagentRunId)
    const mark = { timestamp, subagentRunId }
    if (failure) this.#page.emit({ ...mark, type: 'SUBAGENT_ERROR', ...failure })
    else if (rests && asks) {
      const interruptIds = asks.get(subagentRunId) ?? []
      this.#page.emit({ ...mark, type: 'SUBAGENT_FINISHED', outcome: { type: 'suspended', interruptIds } })
    } else this.#page.emit({ ...mark, type: 'SUBAGENT_FINISHED', outcome: { type: 'success' } })
  }
}
