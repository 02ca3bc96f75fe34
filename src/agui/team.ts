import type { AgentEvent } from '../../machines/agent/announcements.js'
import { isRestState } from '../../machines/agent/run-result.js'
import { CallNames } from './messages.js'
import type { Page } from './page.js'
import { Speaker } from './speaker.js'

type ChildEvent = Extract<AgentEvent, { type: 'child_event' }>

/** A sub-agent at work. */
interface Member {
  /** The id of its run. */
  id: string
  speaker: Speaker
  rests: boolean
  failure: { message: string; code: string } | null
}

/** The sub-agents of a run: each is announced when it is first heard of, and closed once. */
export class Team {
  readonly #page: Page
  readonly #lead: Speaker
  /** By the ids of the calls that lead to them, in the order in which they began. */
  readonly #members = new Map<string, Member>()
  readonly #closed = new Set<string>()

  constructor(page: Page, lead: Speaker) {
    this.#page = page
    this.#lead = lead
  }

  /** The sub-agent that works at these calls, or that has asked about a call below them. */
  memberOf(callId: string): string | undefined {
    return this.#members.get(callId)?.id
  }

  hear({ callId, path, event, at }: ChildEvent): void {
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
        member.speaker.hear(event)
    }
  }

  /** What the page calls a call: of the run's own, or of a sub-agent's, whose id has those of the calls that lead to it. */
  nameOf(callId: string): string {
    const [above, member] = this.#above(callId)
    return member ? member.speaker.nameOf(callId.slice(above.length + 1)) : this.#lead.nameOf(callId)
  }

  /** The sub-agent that a call belongs to. */
  ownerOf(callId: string): string | undefined {
    return this.#above(callId)[1]?.id
  }

  /** A call has its result: whoever worked at it is done, and so is whoever worked for them. */
  settle(callId: string, at: number): void {
    this.#closeAll((id) => id === callId || id.startsWith(`${callId}/`), at)
  }

  /** The run stands still, or has ended. `asks`: the ids of the interrupts that a sub-agent's calls are. */
  end(at: number, asks: ReadonlyMap<string, string[]>): void {
    this.#closeAll(() => true, at, asks)
  }

  #announce(callId: string, name: string, id: string, timestamp: number): Member {
    const [, above] = this.#above(callId)
    const parentToolCallId = this.nameOf(callId)
    const whose = { subagentRunId: id, messages: `${id}.`, calls: `${parentToolCallId}/` }
    const speaker = new Speaker(this.#page, whose, new CallNames())
    const member: Member = { id, speaker, rests: false, failure: null }
    this.#members.set(callId, member)
    this.#page.tell({
      timestamp,
      type: 'SUBAGENT_STARTED',
      subagentRunId: id,
      name,
      parentToolCallId,
      ...(above && { parentSubagentRunId: above.id }),
    })
    return member
  }

  /** The innermost sub-agent that a call lies in; ids of calls may have slashes of their own. */
  #above(callId: string): [string, Member | undefined] {
    let found: [string, Member | undefined] = ['', undefined]
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
    const { id: subagentRunId, speaker, rests, failure } = member
    speaker.end(timestamp)
    this.#members.delete(callId)
    this.#closed.add(subagentRunId)
    const mark = { timestamp, subagentRunId }
    if (failure) this.#page.tell({ ...mark, type: 'SUBAGENT_ERROR', ...failure })
    else if (rests && asks) {
      const interruptIds = asks.get(subagentRunId) ?? []
      this.#page.tell({ ...mark, type: 'SUBAGENT_FINISHED', outcome: { type: 'suspended', interruptIds } })
    } else this.#page.tell({ ...mark, type: 'SUBAGENT_FINISHED', outcome: { type: 'success' } })
  }
}
