import type { LogRecord } from '../../src/core/sessions/store/store.js'

/** A logged call with its arguments and approver. */
interface LoggedCall {
  name: string
  arguments: string
  isApproved: boolean
  isRejected: boolean
  answers: number
}

/** A logged grant for later calls. */
interface LoggedGrant {
  tool: string
  /** Null means any arguments. */
  arguments: string | null
  uses: number
  isRevoked: boolean
}

interface LoggedEvent {
  type: string
  inbox?: number
  key?: string
  callId?: string
  messageId?: string
  arguments?: string
  tool?: string
  /** A new grant, or the id of a revoked one. */
  grant?: { id: string; when?: object; uses?: number } | string
  text?: string
  why?: string
  now?: number
  output?: {
    response?: {
      toolCalls?: { id: string; function: { name: string; arguments: string } }[]
      usage?: { totalTokens?: number } | null
    }
  }
}

/** The state of a log, read record by record. It depends only on the log format, not on product code. */
export class LogView {
  head = 0
  runs = 0
  /** The number of resumes. */
  resumes = 0
  /** State of the latest run. */
  steps = 0
  tokens = 0
  /** The inbox messages in the log. */
  readonly inbox = new Map<number, number>()
  /** The messages that started runs. */
  readonly queued = new Map<number, number>()
  /** The ids of user messages, with their counts. */
  readonly messageCounts = new Map<string, number>()
  readonly calls = new Map<string, LoggedCall>()
  readonly grants = new Map<string, LoggedGrant>()
  /** The steering texts, with their counts. */
  readonly steered = new Map<string, number>()
  /** Runs with a stop request. */
  readonly cancelled = new Set<number>()
  #batch = 0

  /** Reads a record and returns a one-word summary. */
  add({ seq, type, data }: LogRecord): string {
    this.head = seq
    const content = JSON.parse(data) as {
      event?: LoggedEvent
      input?: { input?: { id?: string; data?: { clientId?: string } }[]; history?: unknown[] }
      queued?: number
    }
    if (type === 'start') {
      this.runs += 1
      this.steps = 0
      this.tokens = 0
      if (content.queued !== undefined) count(this.queued, content.queued)
      for (const { data: own } of content.input?.input ?? [])
        if (own?.clientId) count(this.messageCounts, own.clientId)
      return `start of run ${this.runs}`
    }
    if (type !== 'event' || !content.event) return type
    return this.#addEvent(content.event)
  }

  #addEvent(event: LoggedEvent): string {
    const { type, inbox, key, callId } = event
    if (inbox !== undefined) count(this.inbox, inbox)
    if (key !== undefined) count(this.messageCounts, key)
    switch (type) {
      case 'xstate.done.actor.model': {
        const { toolCalls = [], usage } = event.output?.response ?? {}
        this.steps += 1
        this.tokens += usage?.totalTokens ?? 0
        this.#batch += 1
        for (const { id, function: called } of toolCalls) {
          this.calls.set(`${this.runs}.${this.#batch}:${id}`, {
            name: called.name,
            arguments: called.arguments,
            isApproved: false,
            isRejected: false,
            answers: 0,
          })
        }
        return toolCalls.length > 0
          ? `calls ${toolCalls.map(({ id, function: { name } }) => `${name} ${id}`).join(', ')}`
          : 'answer'
      }
      case 'STEER':
        count(this.steered, event.text ?? '')
        break
      case 'RESUMED':
        this.resumes += 1
        break
      case 'CANCEL':
        this.cancelled.add(this.runs)
        break
      case 'APPROVE':
      case 'REJECT': {
        const call = this.#find(callId)
        if (call) call.answers += 1
        if (call && type === 'APPROVE') {
          call.isApproved = true
          if (event.arguments !== undefined) call.arguments = event.arguments
          this.#addGrant(event, call)
        } else if (call) call.isRejected = true
        break
      }
      case 'GRANT':
        this.#addGrant(event)
        break
      case 'REVOKE': {
        const grant = typeof event.grant === 'string' ? this.grants.get(event.grant) : undefined
        if (grant) grant.isRevoked = true
        break
      }
    }
    return callId === undefined ? type.replace('xstate.', '') : `${type} ${callId}`
  }

  #addGrant({ tool = '', grant }: LoggedEvent, call?: LoggedCall): void {
    if (typeof grant !== 'object') return
    const { id, when, uses = Infinity } = grant
    const exact = when ? null : (call?.arguments ?? '')
    this.grants.set(id, { tool: call?.name ?? tool, arguments: exact, uses, isRevoked: false })
  }

  /** The grants for a call, also those that are revoked. */
  findGrants(name: string, input: string): LoggedGrant[] {
    const all = [...this.grants.values()]
    return all.filter((one) => one.tool === name && (one.arguments === null || one.arguments === input))
  }

  /** The call of the last answer with this id. */
  #find(callId = ''): LoggedCall | undefined {
    const id = callId.split('/')[0]
    return this.calls.get(`${this.runs}.${this.#batch}:${id}`)
  }

  /** How often a call of the last answer was approved or refused. */
  countAnswers(callId: string): number {
    return this.#find(callId)?.answers ?? 0
  }

  /** The calls with this id, name and input, at any time. */
  findCalls(callId: string, name: string, input: string): LoggedCall[] {
    return [...this.calls].flatMap(([key, call]) =>
      key.endsWith(`:${callId}`) && call.name === name && call.arguments === input ? [call] : [],
    )
  }
}

function count<Key>(counts: Map<Key, number>, key: Key): void {
  counts.set(key, (counts.get(key) ?? 0) + 1)
}
