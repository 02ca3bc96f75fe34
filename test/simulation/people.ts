import { StatewrightError } from '../../src/core/base/errors.js'
import type { SessionAnswer } from '../../src/core/drive/drive-answers.js'
import type { RunSessionOptions } from '../../src/core/drive/drive-options.js'
import type { SessionResult } from '../../src/core/drive/drive-rest.js'
import type { SessionMessage } from '../../src/core/sessions/inbox/session-message.js'
import type { PendingCall } from '../../machines/agent/run-result.js'
import type { Host } from './host.js'
import type { Plan, Saying } from './plan.js'
import type { SharedStore } from './shared-store.js'
import type { Effects } from './tools.js'
import type { World } from './world.js'

/** A question that a person has answered or is about to answer. */
interface Asked {
  /** The answer was sent and has a receipt. */
  isTold: boolean
  isOpen: boolean
}

interface Stage {
  world: World
  plan: Plan
  shared: SharedStore
  effects: Effects
  desks: () => readonly Host[]
}

/** People who send messages to sessions and answer their questions. */
export class People {
  readonly #stage: Stage
  readonly #questions = new Map<string, Asked>()
  /** Answers for the next `runSession` call. */
  readonly #byDrive = new Map<string, Partial<RunSessionOptions>>()
  /** Answers that a `runSession` call delivered and whose client has seen the result. */
  readonly #seen = new Set<RunSessionOptions['answers']>()
  /** The messages of retrying clients, by session and key, with whether their client has seen a receipt. */
  readonly #sent = new Map<string, { session: string; key: string; isSeen: boolean }>()
  #messageCount = 0

  constructor(stage: Stage) {
    this.#stage = stage
    for (const saying of stage.plan.sayings)
      if (saying.session <= stage.plan.sessions) stage.world.after(saying.at, null, () => this.#say(saying))
    for (const { at, session, desk, uses, revokedAt } of stage.plan.grants?.given ?? []) {
      if (session > stage.plan.sessions) continue
      stage.world.after(at, null, () => {
        const limits = { when: {}, ...(uses !== null && { uses }) }
        void this.tell(this.#desk(desk), `s${session}`, { type: 'grant', tool: 'pay', ...limits })
      })
      if (revokedAt !== null)
        stage.world.after(revokedAt, null, () => void this.#revokeAll(`s${session}`, desk))
    }
    for (const [i, { at, session, desk, when }] of (stage.plan.clients?.messages ?? []).entries()) {
      if (session <= stage.plan.sessions)
        stage.world.after(at, null, () => void this.#sendMessage(`s${session}`, `key-${i + 1}`, desk, when))
    }
  }

  nextOptions(session: string): Partial<RunSessionOptions> {
    const options = this.#byDrive.get(session) ?? {}
    this.#byDrive.delete(session)
    const { clients } = this.#stage.plan
    if (clients && options.answers)
      this.#stage.world.after(clients.patienceMs, null, () => {
        if (!this.#seen.has(options.answers) && !this.#byDrive.has(session))
          this.#byDrive.set(session, options)
      })
    return options
  }

  hasAnswers(session: string): boolean {
    return this.#byDrive.has(session)
  }

  #desk(number: number): Host {
    const desks = this.#stage.desks()
    const host = desks[number % desks.length] as Host
    return host.life.isAlive && !host.life.isPaused ? host : (desks[0] as Host)
  }

  #say({ session: number, desk, what, twice }: Saying): void {
    const { world } = this.#stage
    const [session, id] = [`s${number}`, `say-${(this.#messageCount += 1)}`]
    const message: SessionMessage =
      what === 'sleep' ? { type: 'resume', at: world.now + 120_000 } : toMessage(what, id)
    const attempt = (): void => void this.tell(this.#desk(desk), session, message)
    attempt()
    // Only messages with an id may be repeated.
    if (twice && message.type === 'message') world.after(world.between('people', 100, 60_000), null, attempt)
  }

  /** Revokes every grant that people can see or have sent. */
  async #revokeAll(session: string, desk: number): Promise<void> {
    const { shared } = this.#stage
    const sent = shared.landed.flatMap((one) =>
      one.session === session && one.text.startsWith('{"type":"GRANT"')
        ? [(JSON.parse(one.text) as { grant: { id: string } }).grant.id]
        : [],
    )
    for (const grant of new Set([...shared.view(session).grants.keys(), ...sent]))
      await this.tell(this.#desk(desk), session, { type: 'revoke', grant })
  }

  /** Sends a user message under one key until its client sees a receipt. */
  async #sendMessage(session: string, key: string, desk: number, when: 'next' | 'now'): Promise<void> {
    const sent = { session, key, isSeen: false }
    this.#sent.set(`${session} ${key}`, sent)
    const code = await this.#sendAgain(session, toMessage(when, key), desk)
    if (code === null) sent.isSeen = true
    // No run is active, so the next turn starts with it.
    else if (when === 'now') await this.#sendMessage(session, key, desk + 1, 'next')
    else this.#stage.world.break(`Message ${key} for ${session} is refused: ${code}.`)
  }

  /**
   * Sends it to one process after another with growing pauses until a reply arrives. Null means a receipt.
   */
  async #sendAgain(session: string, message: SessionMessage, desk: number): Promise<string | null> {
    const { world, plan } = this.#stage
    const { lost = 0, patienceMs = 0 } = plan.clients ?? {}
    for (let attempt = 0; ; attempt++) {
      const backoff = 2 ** Math.min(attempt, 5)
      const reply = await new Promise<string | null>((resolve) => {
        world.after(world.isCalm ? 30_000 : patienceMs * backoff, null, () => resolve('no reply'))
        const sent = this.#send(this.#desk(desk + attempt), session, message)
        const settle = (code: string | null): void => {
          if (world.isCalm || world.draw('clients') >= lost) resolve(code)
          else world.tell('client', `does not see the reply to ${inWords(message)}`)
        }
        void sent.then(settle)
      })
      if (reply === null || !isForRetry.has(reply)) return reply
      await new Promise<void>((resolve) => {
        world.after(world.between('clients', 100, 5000) * backoff, null, resolve)
      })
    }
  }

  /** Clients that wait for a receipt. */
  get hasWaiting(): boolean {
    return [...this.#sent.values()].some(({ isSeen }) => !isSeen)
  }

  /** A message with a receipt did not appear exactly once. Each sentence is a broken promise. */
  findUnsaid(): string[] {
    return [...this.#sent.values()].flatMap(({ session, key }) => {
      const times = this.#stage.shared.view(session).messageCounts.get(key) ?? 0
      return times === 1
        ? []
        : [`${key} was sent to ${session} until it had a receipt, and said ${times} times.`]
    })
  }

  /** Sends it in the host's current life. True means a receipt. */
  async tell(host: Host, session: string, message: SessionMessage): Promise<boolean> {
    return (await this.#send(host, session, message)) === null
  }

  /** The error code, or null for a receipt. */
  async #send(host: Host, session: string, message: SessionMessage): Promise<string | null> {
    const { world, shared } = this.#stage
    const { life, agent } = host
    world.tell(life.name, `is to tell ${session}: ${inWords(message)}`)
    try {
      const { message: number, status } = await new Promise<{ message: number; status: string }>(
        (resolve, reject) => {
          world.after(0, life, () => void agent.send(session, message).then(resolve, reject))
        },
      )
      world.tell(life.name, `has told ${session} ${inWords(message)}: message ${number}, ${status}`)
      if (status !== 'applied' && !shared.hasLanded(session, number))
        world.break(`There is a receipt for message ${number} of ${session}, which is in no inbox.`)
      return null
    } catch (error) {
      const code = error instanceof StatewrightError ? error.code : ''
      world.tell(life.name, `cannot tell ${session} ${inWords(message)}: ${code}`)
      if (code === '') world.break(`tell fails with ${error instanceof Error ? error.stack : String(error)}`)
      return code
    }
  }

  /** A session is idle. The person who has to answer checks it after a while. */
  onSettle(
    session: string,
    { state, undelivered }: SessionResult,
    { answers }: Partial<RunSessionOptions>,
  ): void {
    const { world, plan } = this.#stage
    const { clients } = plan
    if (clients && answers && !undelivered && (world.isCalm || world.draw('clients') >= clients.lost))
      this.#seen.add(answers)
    if (state !== 'WAITING_FOR_INPUT' && state !== 'PAUSED') return
    world.after(
      world.between('people', 300, world.isCalm ? 2000 : plan.manner.slowest),
      null,
      () => void this.attend(session),
    )
  }

  /** Checks a session and answers its pending questions. */
  async attend(session: string): Promise<void> {
    const { world } = this.#stage
    const desk = this.#desk(Math.floor(world.draw('desks') * 5))
    const { life, agent } = desk
    try {
      const { run, seq } = await new Promise<Awaited<ReturnType<typeof agent.replay>>>((resolve, reject) => {
        world.after(0, life, () => void agent.replay(session).then(resolve, reject))
      })
      if (run?.state === 'PAUSED') {
        // People leave most sleeping runs asleep.
        if (run.wakeAt !== undefined && (world.isCalm || world.draw('people') < 0.8)) return
        if (world.isCalm || world.draw('people') < 0.7) await this.tell(desk, session, { type: 'resume' })
      } else if (run?.state === 'WAITING_FOR_INPUT') {
        for (const call of run.pending) this.#answer(desk, { session, call, at: seq })
      }
    } catch (error) {
      if (error instanceof StatewrightError) world.tell(life.name, `cannot read ${session}: ${error.code}`)
      else world.break(`replay fails with ${error instanceof Error ? error.stack : String(error)}`)
    }
  }

  /** Answers a question once. After a receipt, the product must apply the answer. */
  #answer(desk: Host, { session, call, at }: { session: string; call: PendingCall; at: number }): void {
    const { world, plan, effects } = this.#stage
    const { manner } = plan
    const path = call.messageId?.replaceAll('m', '').split('/') ?? []
    const what = `${session}|${path.length > 1 ? '/' : ''}${path.at(-1)}:${call.callId.split('/').at(-1)}`
    // A call that was interrupted twice is asked about twice.
    const id = `${what} ${call.messageId} ${call.callId} ${this.#stage.shared.view(session).countAnswers(call.callId)}`
    const question = this.#questions.get(id) ?? { isTold: false, isOpen: false }
    this.#questions.set(id, question)
    if (question.isOpen || question.isTold) return
    const draw = (): number => world.draw('people')
    const isYes = draw() >= manner.rejects
    const edited = isYes && draw() < manner.edits ? { n: 900 + this.#questions.size } : undefined
    const isLoose = draw() < manner.loose
    const { callId, fingerprint, messageId } = call
    const bound = { callId, fingerprint, ...(!isLoose && messageId !== undefined && { messageId }) }
    const { withApproval = 0 } = plan.grants ?? {}
    const grant = isYes && withApproval > 0 && draw() < withApproval ? { uses: 2 } : undefined
    const answer: SessionAnswer = isYes
      ? { type: 'approve', ...bound, ...(edited && { editedInput: edited }), ...(grant && { grant }) }
      : { type: 'reject', ...bound, why: 'No.' }
    if (isYes)
      effects.allow(what, {
        isAgain: call.interrupted === true,
        input: edited ? JSON.stringify(edited) : call.arguments,
      })
    if (draw() < manner.byDrive) {
      // The next call delivers it, and the following call may repeat it.
      const options = { answers: [...(this.#byDrive.get(session)?.answers ?? []), answer], at }
      this.#byDrive.set(session, options)
      if (draw() < manner.twice)
        world.after(world.between('people', 3000, 20_000), null, () => this.#byDrive.set(session, options))
      return
    }
    question.isOpen = true
    const settle = async (): Promise<void> => {
      question.isTold =
        plan.clients && !isLoose
          ? (await this.#sendAgain(session, answer, this.#stage.desks().indexOf(desk))) === null
          : await this.tell(desk, session, answer)
      question.isOpen = false
    }
    void settle()
    // A client stops waiting for a receipt after this time.
    world.after(70_000, null, () => (question.isOpen = false))
    // Without its messageId, an answer applies to the call that waits at delivery, which may be an equal one.
    if (draw() < manner.twice && !isLoose)
      world.after(
        world.between('people', 10, 60_000),
        null,
        () => void this.tell(this.#desk(1), session, answer),
      )
  }
}

/** Replies after which the same message is sent again. */
const isForRetry: ReadonlySet<string> = new Set(['no reply', 'store_unavailable', 'unknown_session'])

function toMessage(what: Exclude<Saying['what'], 'sleep'>, id: string): SessionMessage {
  switch (what) {
    case 'steer':
      return { type: 'steer', text: id }
    case 'cancel':
      return { type: 'cancel', why: id }
    case 'next':
    case 'now':
      return { type: 'message', when: what, input: `This is ${id}.`, messageId: id }
    default:
      return { type: what }
  }
}

function inWords(message: SessionMessage): string {
  if ('callId' in message) return `${message.type} ${message.callId}`
  if (message.type === 'message') return `${message.messageId} (${message.when})`
  if (message.type === 'steer') return `steer ${message.text}`
  if (message.type === 'revoke' && 'grant' in message) return `revoke ${message.grant}`
  return message.type === 'resume' && message.at !== undefined ? 'sleep' : message.type
}
