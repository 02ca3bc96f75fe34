import type { BranchRequest } from './branched-runs.js'
import type { PageAnswers } from './call-answers.js'
import type { ChatService, SessionView } from './chat-service.js'
import type { IncomingMessage } from './incoming-message.js'
import { type CheckedExpose, PageView } from './exposure.js'
import type { QueuedAnswer, WhenBusy } from './message-queue.js'
import type { Subscription } from './subscription.js'
import type { Caller } from './live-runs.js'

/** What one request may do with the sessions of an agent, and what its page may see. */
export interface PageRights extends Caller {
  expose: CheckedExpose
  /** What becomes of a message while the session works. */
  whenBusy: WhenBusy
}

/** The chat service for one request: content that its page may not see is masked. */
export class PageChatService {
  readonly #service: ChatService
  readonly #rights: PageRights

  constructor(chats: ChatService, rights: PageRights) {
    this.#service = chats
    this.#rights = rights
  }

  async sendMessage(sessionId: string, message: IncomingMessage): Promise<Subscription | QueuedAnswer> {
    return this.#maskLater(
      sessionId,
      await this.#service.sendMessage(sessionId, message, this.#rights, this.#rights),
    )
  }

  #maskLater(sessionId: string, sent: Subscription | QueuedAnswer): Subscription | QueuedAnswer {
    if (!('answer' in sent)) return this.#mask(sessionId, sent)
    const answer = sent.answer.then((found) => found && this.#mask(sessionId, found))
    answer.catch((error: unknown) =>
      this.#rights.report({ where: 'run', error, callId: null }, { id: null, sessionId }),
    )
    return { answer }
  }

  async branch(sessionId: string, request: BranchRequest): Promise<Subscription> {
    return this.#mask(sessionId, await this.#service.branch(sessionId, request, this.#rights))
  }

  async answerCalls(sessionId: string, answers: PageAnswers): Promise<Subscription> {
    return this.#mask(sessionId, await this.#service.answerCalls(sessionId, answers, this.#rights))
  }

  async resumePaused(
    sessionId: string,
    options: Parameters<ChatService['resumePaused']>[1],
  ): Promise<Subscription> {
    return this.#mask(sessionId, await this.#service.resumePaused(sessionId, options, this.#rights))
  }

  /** `hasAnswered`: the same request has just answered, so that it may resume the run. */
  async subscribe(sessionId: string, { hasAnswered = false } = {}): Promise<Subscription | null> {
    const mayContinue = hasAnswered || this.#rights.mayContinue
    const subscription = await this.#service.subscribe(sessionId, this.#rights, { mayContinue })
    return subscription && this.#mask(sessionId, subscription as Subscription)
  }

  /** The answer to a user message, whether it is complete, under way, or waits for its turn. */
  async subscribeTo(sessionId: string, of: string): Promise<Subscription | QueuedAnswer | null> {
    const { mayContinue } = this.#rights
    const found = await this.#service.subscribe(sessionId, this.#rights, { mayContinue, of })
    return found && this.#maskLater(sessionId, found)
  }

  async subscribeAtRest(sessionId: string): Promise<Subscription | null> {
    const subscription = await this.#service.subscribeAtRest(sessionId)
    return subscription && this.#mask(sessionId, subscription)
  }

  async readSession(sessionId: string, branch?: number): Promise<SessionView | null> {
    const session = await this.#service.readSession(sessionId, branch)
    if (session === null) return null
    const view = this.#createView(sessionId)
    const { messages, ends } = session
    return { ...session, messages: view.maskMessages(messages), ends: view.maskEnds(ends) }
  }

  cancelRun(sessionId: string): Promise<void> {
    return this.#service.cancelRun(sessionId, this.#rights)
  }

  #createView(sessionId: string): PageView {
    return new PageView(this.#rights.expose, sessionId)
  }

  #mask(sessionId: string, subscription: Subscription): Subscription {
    return maskSubscription(subscription, this.#createView(sessionId))
  }
}

/** Masks everything that a subscription delivers. */
export function maskSubscription(subscription: Subscription, view: PageView): Subscription {
  const { before, ends, turn, reader } = subscription
  return {
    ...subscription,
    before: view.maskMessages(before),
    ends: view.maskEnds(ends),
    turn: turn && {
      ...turn,
      before: view.maskMessages(turn.before),
      messages: view.maskMessages(turn.messages),
      settled: turn.settled.map((result) => view.maskResult(result)),
      error: view.maskRunFailure(turn.error),
    },
    reader: {
      takeEvents: () => {
        for (;;) {
          const taken = reader.takeEvents()
          if (taken === null || taken.length === 0) return taken
          const shown = taken.flatMap((event) => view.maskEvent(event) ?? [])
          if (shown.length > 0) return shown
        }
      },
      waitForEvents: () => reader.waitForEvents(),
    },
  }
}
