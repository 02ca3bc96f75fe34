import type { LogRecord } from '../../src/core/sessions/store/store.js'

/** A call as the log has it: what it is called with, and who has allowed it. */
interface LoggedCall {
  name: string
  arguments: string
  isApproved: boolean
  isRejected: boolean
  answers: number
}

interface LoggedEvent {
  type: string
  inbox?: number
  key?: string
  callId?: string
  messageId?: string
  arguments?: string
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

/** What a log says, read record by record as it grows, and by nothing of the product but its format. */
export class LogView {
  head = 0
  runs = 0
  /** How often a run was taken up again. */
  resumes = 0
  /** Of the latest run. */
  steps = 0
  tokens = 0
  /** Each message of the inbox that is in it. */
  readonly inbox = new Map<number, number>()
  /** The messages with which runs began. */
  readonly queued = new Map<number, number>()
  /** The ids of user messages that were said, and how often. */
  readonly said = new Map<string, number>()
  readonly calls = new Map<string, LoggedCall>()
  /** The texts of steering, and how often each is there. */
  readonly steered = new Map<string, number>()
  /** Runs that were told to stop. */
  readonly cancelled = new Set<number>()
  #batch = 0

  /** Takes a record, and returns what it says in a word. */
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
        if (own?.clientId) count(this.said, own.clientId)
      return `start of run ${this.runs}`
    }
    if (type !== 'event' || !content.event) return type
    return this.#addEvent(content.event)
  }

  #addEvent(event: LoggedEvent): string {
    const { type, inbox, key, callId } = event
    if (inbox !== undefined) count(this.inbox, inbox)
    if (key !== undefined) count(this.said, key)
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
        } else if (call) call.isRejected = true
        break
      }
    }
    return callId === undefined ? type.replace('xstate.', '') : `${type} ${callId}`
  }

  /** The call of the last answer with this id. */
  #find(callId = ''): LoggedCall | undefined {
    const id = callId.split('/')[0]
    return this.calls.get(`${this.runs}.${this.#batch}:${id}`)
  }

  /** How often a call of the last answer has been allowed or refused. */
  countAnswers(callId: string): number {
    return this.#find(callId)?.answers ?? 0
  }

  /** The calls of this id, name and input, whenever they were made. */
  findCalls(callId: string, name: string, input: string): LoggedCall[] {
    return [...this.calls].flatMap(([key, call]) =>
      key.endsWith(`:${callId}`) && call.name === name && call.arguments === input ? [call] : [],
    )
  }
}

function count<Key>(counts: Map<Key, number>, key: Key): void {
  counts.set(key, (counts.get(key) ?? 0) + 1)
}
