import type { CallAnswer } from './call-answers.js'
import type { Chats, Conversation, Said } from './chats.js'
import { type ExposeOptions, PageView } from './exposure.js'
import type { Joined } from './joined.js'
import type { Caller } from './live-runs.js'

/** How one request may use the sessions of an agent, and what of them its page may see. */
export interface PageRights extends Caller {
  mayContinue: boolean
  expose: ExposeOptions
}

/** The sessions of an agent as one request sees them: what its page may not see is masked. */
export class PageChats {
  readonly #chats: Chats
  readonly #rights: PageRights

  constructor(chats: Chats, rights: PageRights) {
    this.#chats = chats
    this.#rights = rights
  }

  /** As `Chats.say`. */
  async say(sessionId: string, said: Said): Promise<Joined> {
    return this.#shown(sessionId, await this.#chats.say(sessionId, said, this.#rights))
  }

  /** As `Chats.answer`. */
  async answer(sessionId: string, answers: readonly CallAnswer[]): Promise<Joined> {
    return this.#shown(sessionId, await this.#chats.answer(sessionId, answers, this.#rights))
  }

  /** As `Chats.goOn`. */
  async goOn(sessionId: string, how: Parameters<Chats['goOn']>[1]): Promise<Joined> {
    return this.#shown(sessionId, await this.#chats.goOn(sessionId, how, this.#rights))
  }

  /** As `Chats.attach`. `hasAnswered`: the same request has made the run work. */
  async attach(sessionId: string, { hasAnswered = false } = {}): Promise<Joined | null> {
    const mayContinue = hasAnswered || this.#rights.mayContinue
    const joined = await this.#chats.attach(sessionId, this.#rights, { mayContinue })
    return joined && this.#shown(sessionId, joined)
  }

  /** As `Chats.standing`. */
  async standing(sessionId: string): Promise<Joined | null> {
    const joined = await this.#chats.standing(sessionId)
    return joined && this.#shown(sessionId, joined)
  }

  /** As `Chats.read`. */
  async read(sessionId: string): Promise<Conversation | null> {
    const stood = await this.#chats.read(sessionId)
    return stood && { ...stood, messages: this.#view(sessionId).messages(stood.messages) }
  }

  /** As `Chats.stop`. */
  stop(sessionId: string): Promise<void> {
    return this.#chats.stop(sessionId, this.#rights)
  }

  #view(sessionId: string): PageView {
    return new PageView(this.#rights.expose, sessionId)
  }

  #shown(sessionId: string, joined: Joined): Joined {
    return shownJoined(joined, this.#view(sessionId))
  }
}

/** An answer as a page may see it. */
export function shownJoined(joined: Joined, view: PageView): Joined {
  const { before, turn, reader } = joined
  return {
    ...joined,
    before: view.messages(before),
    turn: turn && {
      ...turn,
      before: view.messages(turn.before),
      messages: view.messages(turn.messages),
      settled: turn.settled.map((result) => view.result(result)),
      error: view.runFailure(turn.error),
    },
    reader: {
      take: () => {
        for (;;) {
          const taken = reader.take()
          if (taken === null || taken.length === 0) return taken
          const shown = taken.flatMap((event) => view.event(event) ?? [])
          if (shown.length > 0) return shown
        }
      },
      news: () => reader.news(),
    },
  }
}
