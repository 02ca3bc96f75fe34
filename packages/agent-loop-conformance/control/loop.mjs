// The controls, a minimal loop that handles every case correctly, and the same loop with one mistake that its case must find. A case
// that passes the mistake, or fails the correct loop, proves nothing about a library.
import { createHash } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import { readAnswer } from './read-answer.mjs'

const limitOfSteps = 50
const isNormal = (finish) => finish === 'stop' || finish === 'tool_calls'

/** The work, or the abort reason if the abort comes first. */
function orAborted(work, signal, mistake) {
  return new Promise((resolve, reject) => {
    const stop = () => reject(signal.reason)
    if (signal.aborted) stop()
    signal.addEventListener('abort', stop, { once: true })
    work
      .then(resolve, reject)
      .finally(() => (mistake === 'leavesListeners' ? undefined : signal.removeEventListener('abort', stop)))
  })
}

/** The input of a call, or the reason for its absence. */
function inputOf({ input: text }, { fields }, mistake) {
  if (text === '' && mistake !== 'wantsArguments') return { input: {} }
  let input
  try {
    input = JSON.parse(text)
  } catch (error) {
    if (mistake === 'wantsArguments') throw error
    if (mistake === 'runsBrokenArguments' || mistake === 'repairsArguments') return { input: { path: text } }
    return { why: `The arguments are not JSON: ${error.message}` }
  }
  const wrong = Object.entries(fields).find(([name, type]) => typeof input?.[name] !== type)
  return wrong && mistake !== 'runsBrokenArguments'
    ? { why: `${wrong[0]} has to be a ${wrong[1]}.` }
    : { input }
}

function asText(value, mistake) {
  if (typeof value === 'string') return value
  if (mistake === 'wantsJson') return JSON.parse(JSON.stringify(value))
  try {
    return JSON.stringify(value) ?? 'null'
  } catch {
    return String(value)
  }
}

const checkOf = (state) => createHash('sha256').update(`a secret ${state}`).digest('hex')

/** Combined manually, because Node 20 drops the signals that `AbortSignal.any` creates. */
function withDeadline(signal, ms) {
  const controller = new AbortController()
  setTimeout(() => controller.abort(new Error('the deadline')), ms)
  signal.addEventListener('abort', () => controller.abort(signal.reason), { once: true })
  return controller.signal
}

/** The shared state of all conversations with the mistake `sharesMessages`, and with `sharesDecisions`. */
const shared = []
const decisions = new Map()

class Conversation {
  #messages = []
  #options
  #mistake
  #ids = 0
  #last = Promise.resolve()
  /** The answer with the waiting calls, and its run. */
  #waiting
  #isApproved = false

  constructor(options) {
    this.#options = options
    this.#mistake = options.mistake
    if (this.#mistake === 'sharesMessages') this.#messages = shared
    if (options.saved) this.#restore(options.saved)
  }

  /** Runs are sequential, because each run reads the messages of the previous run. */
  say(text, options) {
    if (this.#mistake === 'runsBeside') return this.#say(text, options)
    const turn = this.#last.then(() => this.#say(text, options))
    this.#last = turn.catch(() => undefined)
    return turn
  }

  async #say(text, { signal = new AbortController().signal } = {}) {
    const { limits = {} } = this.#options
    const limited = limits.deadlineMs ? withDeadline(signal, limits.deadlineMs) : signal
    const run = {
      signal: this.#mistake === 'ignoresSignal' ? new AbortController().signal : limited,
      usage: { input: 0, output: 0 },
      steps: 0,
      text: '',
    }
    this.#messages.push({ role: 'user', content: text })
    return this.#go(run)
  }

  /** The person's decisions on the waiting calls: `{ id: boolean }`. */
  async answer(chosen) {
    if (!this.#waiting) return { text: '', ok: false, ended: 'nothing is asked' }
    const { answer, run } = this.#waiting
    if (this.#mistake !== 'answersTwice') this.#waiting = undefined
    this.#isApproved = true
    if (this.#mistake === 'sharesDecisions') chosen = decisions.get(this.#options.baseURL) ?? chosen
    decisions.set(this.#options.baseURL, chosen)
    await this.#execute(answer, run, chosen)
    return this.#go(run)
  }

  save() {
    const state = JSON.stringify({ messages: this.#messages, asked: this.#waiting?.answer })
    return JSON.stringify({ state, check: checkOf(state) })
  }

  /** Another conversation, which starts from the current state. */
  fork() {
    return this.#mistake === 'sharesForks' ? this : new Conversation({ ...this.#options, saved: this.save() })
  }

  #restore(saved) {
    const { state, check } = JSON.parse(saved)
    if (check !== checkOf(state) && this.#mistake !== 'trustsState') throw new Error('the state was changed')
    const { messages, asked: waiting } = JSON.parse(state)
    this.#messages = messages
    const run = { signal: new AbortController().signal, usage: { input: 0, output: 0 }, steps: 1, text: '' }
    if (waiting && this.#mistake !== 'forgetsState') this.#waiting = { answer: waiting, run }
  }

  async #go(run) {
    const mistake = this.#mistake
    const { limits = {}, tools = [] } = this.#options
    const most =
      (limits.steps ?? (mistake === 'neverStops' ? 1000 : limitOfSteps)) +
      (mistake === 'countsFromZero' ? -1 : 0)
    const ends = (ended, ok = false) => ({
      text: run.text,
      ok,
      ended,
      usage: mistake === 'forgetsUsageOnError' && !ok ? undefined : run.usage,
    })
    try {
      for (;;) {
        if (run.steps >= most) return ends('the limit of steps')
        const answer = await this.#ask(run)
        run.steps++
        run.text = (mistake === 'joinsAttempts' ? run.text : '') + answer.text
        const isOver =
          limits.tokens && run.usage.input + run.usage.output >= limits.tokens && mistake !== 'ignoresBudget'
        const hasCalls =
          answer.calls.length > 0 && (mistake !== 'trustsFinish' || answer.finish === 'tool_calls')
        const isCut = answer.finish === 'length' || answer.finish === 'content_filter'
        if (isOver && mistake === 'dropsPaidAnswer') run.text = ''
        if (!hasCalls || (isCut && mistake !== 'trustsCutCalls' && mistake !== 'repairsArguments')) {
          if (answer.text || mistake === 'acceptsEmpty')
            this.#messages.push({ role: 'assistant', content: answer.text })
          if (mistake === 'hidesLength') return ends('stop', true)
          if (mistake === 'acceptsAnything' || (mistake === 'acceptsCut' && !answer.finish))
            return ends('stop', true)
          if (!answer.text && mistake !== 'acceptsEmpty') return ends('an empty answer')
          return ends(isOver ? 'the budget' : answer.finish, isNormal(answer.finish) && !isOver)
        }
        const asking = answer.calls.filter(({ name }) => tools.find((tool) => tool.name === name)?.asks)
        const isDecided = mistake === 'keepsDecisions' && this.#isApproved
        if (asking.length > 0 && mistake !== 'neverAsks' && !isDecided) {
          this.#waiting = { answer, run }
          const pending = asking.map(({ id, name, input }) => ({ id, name, input }))
          return { ...ends('a person is asked'), pending }
        }
        await this.#execute(answer, run)
        if (isOver) return ends('the budget')
        if (mistake === 'dropsLastStep' && run.steps >= most) this.#messages.splice(-1 - answer.calls.length)
      }
    } catch (error) {
      return ends(`${error?.name}: ${error?.message}`)
    }
  }

  /** One step's answer. Retries transient failures. */
  async #ask(run) {
    const mistake = this.#mistake
    for (let attempt = 1; ; attempt++) {
      const answer = { text: '', calls: [], finish: null, usage: null }
      try {
        await this.#request(answer, run)
        const { input, output } = answer.usage ?? { input: 0, output: 0 }
        const sum = mistake === 'countsLastStep' ? { input: 0, output: 0 } : run.usage
        run.usage = { ...run.usage, input: sum.input + input, output: sum.output + output }
        return answer
      } catch (error) {
        if (run.signal.aborted) {
          this.#keepPart(answer)
          throw error
        }
        if (mistake === 'joinsAttempts') run.text += answer.text
        else if (answer.text) run.usage.unknown = true
        const status = error.response?.status
        const isFatal = status && status !== 429 && status < 500
        if (mistake === 'neverRetries' || (isFatal && mistake !== 'retriesAll') || attempt === 3) throw error
        const header = error.response?.headers.get('retry-after')
        const seconds = header && (Number(header) || (Date.parse(header) - Date.now()) / 1000)
        await sleep(mistake === 'retriesAtOnce' ? 0 : seconds ? seconds * 1000 + 5 : 300, undefined, {
          signal: run.signal,
        })
      }
    }
  }

  async #request(answer, { signal }) {
    const { baseURL, tools, limits = {} } = this.#options
    const controller = new AbortController()
    let timer
    const touch = () => {
      clearTimeout(timer)
      if (limits.idleMs && this.#mistake !== 'ignoresSilence')
        timer = setTimeout(() => controller.abort(new Error('the answer stalls')), limits.idleMs)
    }
    touch()
    const signals = AbortSignal.any([signal, controller.signal])
    const declared = tools.map(({ name, description, fields }) => ({
      type: 'function',
      function: {
        name,
        description,
        parameters: {
          type: 'object',
          properties: Object.fromEntries(Object.entries(fields).map(([key, type]) => [key, { type }])),
          required: Object.keys(fields),
        },
      },
    }))
    try {
      const response = await fetch(`${baseURL}/chat/completions`, {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify({
          model: 'scripted',
          messages: this.#messages,
          ...(declared.length > 0 && { tools: declared }),
          stream: true,
          stream_options: { include_usage: true },
        }),
        signal: signals,
      })
      await readAnswer(response, answer, this.#mistake, touch)
    } catch (error) {
      const accepts = this.#mistake === 'acceptsCut' || this.#mistake === 'acceptsAnything'
      if (!accepts || signals.aborted || error.response) throw error
      answer.calls.reverse()
    } finally {
      clearTimeout(timer)
    }
  }

  /** The received part of a cancelled answer. */
  #keepPart({ text, calls }) {
    if (this.#mistake === 'keepsHalfCalls' && calls.length > 0)
      this.#messages.push(this.#answerOf(text, calls))
    else if (this.#mistake === 'keepsEmptyAnswer') this.#messages.push({ role: 'assistant', content: '' })
    else if (text) this.#messages.push({ role: 'assistant', content: text })
  }

  #answerOf(text, calls) {
    const keepsInput = this.#mistake === 'keepsBrokenArguments' || this.#mistake === 'keepsHalfCalls'
    const sent = (input) => {
      try {
        JSON.parse(input)
        return input
      } catch {
        return keepsInput ? input : '{}'
      }
    }
    const toolCalls = calls.map(({ id, name, input }) => ({
      id,
      type: 'function',
      function: { name, arguments: sent(input) },
    }))
    return {
      role: 'assistant',
      content: this.#mistake === 'dropsWordsOrCalls' ? null : text || null,
      tool_calls: toolCalls,
    }
  }

  async #execute({ text, calls }, run, answers = {}) {
    const mistake = this.#mistake
    const seen = new Set()
    for (const call of calls) {
      if (mistake !== 'trustsIds' && (call.id === '' || seen.has(call.id))) call.id = `own_${this.#ids++}`
      seen.add(call.id)
    }
    if (mistake === 'dropsWordsOrCalls' && text) calls.splice(1)
    this.#messages.push(this.#answerOf(text, calls))
    const results = new Map()
    const all = Promise.all(
      calls.map(async (call) => results.set(call, await this.#runTool(call, run, answers[call.id]))),
    )
    try {
      await (mistake === 'awaitsTools' ? all : orAborted(all, run.signal, mistake))
    } finally {
      for (const call of calls) {
        if (mistake === 'leavesCallsOpen') continue
        const content = results.get(call) ?? 'Cancelled.'
        this.#messages.push({
          role: 'tool',
          tool_call_id: call.id,
          content: mistake === 'dropsResults' ? 'Gone.' : content,
        })
      }
    }
    run.signal.throwIfAborted()
  }

  async #runTool(call, run, isAllowed) {
    const mistake = this.#mistake
    const { signal } = run
    if (isAllowed === false && mistake !== 'runsRefused') return 'Refused.'
    const tool = this.#options.tools.find(({ name }) => name === call.name)
    if (!tool) {
      if (mistake === 'throwsAtUnknownTool') throw new Error(`there is no tool ${call.name}`)
      return `There is no tool ${call.name}.`
    }
    if (tool.delegate) return this.#runSubAgent(call, run)
    const { input, why } = inputOf(call, tool, mistake)
    if (why) return why
    try {
      return asText(await tool.execute(input, { signal }), mistake)
    } catch (error) {
      if (mistake === 'throwsToolErrors' || mistake === 'wantsJson') throw error
      return `Error: ${error?.message ?? 'unknown'}`
    }
  }

  /** A sub-agent whose usage counts toward this run. */
  async #runSubAgent({ input }, run) {
    const below = new Conversation({ ...this.#options, tools: [], saved: undefined })
    const { text, usage } = await below.say(input, { signal: run.signal })
    if (this.#mistake !== 'forgetsSubAgents') {
      run.usage.input += usage.input
      run.usage.output += usage.output
    }
    return text
  }
}

export const openConversation = (options) => new Conversation(options)
