import type { PendingCall, RunResult } from '../../machines/agent/run-result.js'
import { aguiHandler, type AGUIEvent, type AGUIInterrupt } from '../../src/agui/index.js'
import { askForAnswer } from '../../src/cli/prompt.js'
import { describeNeed, formatResumeCommand } from '../../src/cli/resume-hints.js'
import { memoryStore } from '../../src/core/sessions/store/memory-store.js'
import { createEventFormatter } from '../../src/core/format/format-events.js'
import { listQuestions, readFormAnswer, toInputRequest } from '../../src/mcp/server/questions.js'
import { chatHandler, foldTranscript, type Transcript } from '../../src/ui/index.js'
import { accepted, book, page, seat } from '../support/asking.js'
import { stage } from '../support/play.js'
import { call, text } from '../support/tools.js'

const asks = call('book', { flight: 'X1' })
const done = text('Done.')

const post = (url: string, body: unknown): Request =>
  new Request(url, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(body),
  })

const framesOf = async <Frame>(response: Response): Promise<Frame[]> =>
  [...(await response.text()).matchAll(/^data: (\{.*)$/gm)].map(([, data = '']) => JSON.parse(data) as Frame)

const refusal = async (response: Response): Promise<unknown> => {
  const { error } = (await response.json()) as { error: { code: string } }
  return [response.status, error.code]
}

interface Part {
  type: string
  toolCallId?: string
  toolName?: string
  state?: string
  input?: unknown
  output?: unknown
}

describe('an elicitation on a page of useChat', () => {
  const url = 'http://chat.test/api/chat'

  it.each(['v7', 'v6'] as const)(
    'is a call that the page answers, also after a reload: %s',
    async (protocol) => {
      const tools = [book()]
      const theatre = await stage([asks, done], { tools, store: memoryStore() })
      const handler = chatHandler({ agent: theatre.agent, authorize: 'none', protocol })
      const message = { id: 'u1', role: 'user', parts: [{ type: 'text', text: 'Go.' }] }
      const streamed = await framesOf<Part>(await handler(post(url, { id: 'c', messages: [message] })))
      const shown = streamed.find(({ toolName }) => toolName === 'elicitation')
      expect(shown).toMatchObject({
        type: 'tool-input-available',
        dynamic: true,
        title: 'airline asks',
        input: seat,
      })
      const reloaded = (await (await handler(new Request(`${url}/c`))).json()) as {
        id: string
        parts: Part[]
      }[]
      const [part] = reloaded.at(-1)?.parts.filter(({ toolName }) => toolName === 'elicitation') ?? []
      expect(part).toMatchObject({
        type: 'dynamic-tool',
        state: 'input-available',
        toolCallId: shown?.toolCallId,
      })
      const answer = (output: unknown) =>
        handler(
          post(url, {
            id: 'c',
            messages: [
              message,
              { ...reloaded.at(-1), parts: [{ ...part, state: 'output-available', output }] },
            ],
          }),
        )
      expect(await refusal(await answer({ action: 'accept', content: { seat: 'A' } }))).toEqual([
        400,
        'invalid_answer',
      ])
      const followed = await framesOf<Part>(await answer(accepted))
      expect(followed).toContainEqual(
        expect.objectContaining({ type: 'tool-output-available', output: 'booked' }),
      )
      // The page sends its answer.
      expect(followed.filter(({ toolCallId }) => toolCallId === shown?.toolCallId)).toEqual([])
      expect(tools[0]?.does).toEqual([[{ flight: 'X1' }, accepted]])
      const over = (await (await handler(new Request(`${url}/c`))).json()) as { parts: Part[] }[]
      expect(JSON.stringify(over)).not.toContain('12A')
      expect(await refusal(await answer(accepted))).toEqual([409, 'unknown_call'])
    },
  )

  it('is a question of the transcript until its call has its result', async () => {
    const theatre = await stage([asks, done], { tools: [book()] })
    const play = theatre.run()
    const [question] = (await play.rest()).pending ?? []
    const fold = () =>
      play.events.reduce<Transcript | undefined>((before, event) => foldTranscript(before, event), undefined)
    expect(fold()?.questions).toMatchObject([{ callId: question?.callId, elicitation: seat }])
    play.run.addToolOutput(question?.callId ?? '', accepted)
    await play.end(2)
    expect(fold()?.questions).toEqual([])
  })
})

describe('an elicitation on a page of AG-UI', () => {
  const url = 'http://chat.test/api/agui'
  const body = (more: object) => ({ threadId: 'c', runId: 'r', messages: [], ...more })

  it.each([
    ['accepted', { status: 'resolved', payload: accepted }, accepted],
    ['declined', { status: 'resolved', payload: { action: 'decline' } }, { action: 'decline' }],
    ['abandoned', { status: 'cancelled' }, { action: 'cancel' }],
  ])('is an interrupt: %s', async (_, entry, reported) => {
    const tools = [book()]
    const theatre = await stage([asks, done], { tools, store: memoryStore() })
    const handler = aguiHandler({ agent: theatre.agent, authorize: 'none' })
    const messages = [{ id: 'u1', role: 'user', content: 'Go.' }]
    const events = await framesOf<AGUIEvent>(await handler(post(url, body({ messages }))))
    const { outcome } = events.at(-1) as { outcome: { interrupts: AGUIInterrupt[] } }
    const [interrupt] = outcome.interrupts
    expect(interrupt).toMatchObject({
      reason: 'elicitation',
      message: 'airline asks: Which seat?',
      responseSchema: { properties: { content: seat.schema }, required: ['action'] },
    })
    const { interrupts } = (await (await handler(new Request(`${url}/c`))).json()) as {
      interrupts: unknown[]
    }
    expect(interrupts).toMatchObject([{ id: interrupt?.id, reason: 'elicitation' }])
    const resume = (answer: object) =>
      handler(post(url, body({ messages, resume: [{ interruptId: interrupt?.id, ...answer }] })))
    const wrong = { status: 'resolved', payload: { action: 'accept', content: {} } }
    expect(await refusal(await resume(wrong))).toEqual([400, 'invalid_answer'])
    await (await resume(entry)).text()
    expect(tools[0]?.does).toEqual([[{ flight: 'X1' }, reported]])
  })
})

const question: PendingCall = {
  callId: 'c/ask',
  name: 'book' as never,
  arguments: '{}',
  fingerprint: 'f'.repeat(64),
  needs: 'elicitation',
  elicitation: seat,
}

describe('an elicitation at a terminal', () => {
  /** The question shown to the user, and the result that the run receives. */
  async function typed(elicitation: typeof seat, ...lines: string[]) {
    const shown: string[] = []
    const received: unknown[] = []
    const result = {
      state: 'WAITING_FOR_INPUT',
      reason: 'tool_output',
      pending: [{ ...question, elicitation }],
    } as unknown as RunResult
    const answer = await askForAnswer(result, (line) => {
      shown.push(line)
      return Promise.resolve(lines.shift() ?? null)
    })
    if (answer && 'value' in answer) received.push(answer.value)
    return { shown, received, left: lines }
  }

  it('is asked field by field, and each field again until it is valid', async () => {
    const { shown, received: reported } = await typed(seat, 'a', '1', '12A', 'x', '2', '', 'yes')
    expect(shown[0]).toBe('book: airline asks: Which seat?\n(a)nswer, (d)ecline, (c)ancel: ')
    expect(shown.slice(1)).toEqual([
      '  Seat (text): ',
      '  it must be at least 2 characters long.\n  Seat (text): ',
      '  meals (whole number, Enter to skip): ',
      '  it must be of type integer.\n  meals (whole number, Enter to skip): ',
      '  class (eco | biz, Enter for "eco"): ',
      '  insured (yes | no, Enter to skip): ',
    ])
    expect(reported).toEqual([
      { action: 'accept', content: { seat: '12A', meals: 2, class: 'eco', insured: true } },
    ])
  })

  it.each([
    ['d', { action: 'decline' }],
    ['cancel', { action: 'cancel' }],
  ])('is answered with %s', async (line, answer) => {
    expect((await typed(seat, '?', line)).received).toEqual([answer])
  })

  it('shows the address of a page before consent', async () => {
    const { shown, received: reported } = await typed(page, 'y')
    expect(shown[0]).toContain('Sign the form. https://air.example/sign')
    expect(reported).toEqual([{ action: 'accept' }])
  })

  it('stays open if the input ends', async () => {
    expect((await typed(seat)).received).toEqual([])
    expect((await typed(seat, 'a', '12A')).received).toEqual([])
  })

  it('is printed with the command that answers it', () => {
    expect(describeNeed(question)).toMatch(/^book\(\) \[c\/ask@f{16}\]: airline asks: Which seat\?$/)
    const command = formatResumeCommand('s', { state: 'WAITING_FOR_INPUT', pending: [question] })
    expect(command).toContain('{"action":"accept","content":{"seat":"…"')
  })

  it('cannot move the cursor, or imitate our own text', () => {
    const hostile = { ...seat, server: 'a\u001b[2Jb', message: 'Hi.\n? approval\u202e' }
    const event = {
      ...question,
      elicitation: hostile,
      type: 'elicitation_requested',
      id: 'i',
      runId: 'r',
      seq: 1,
      at: 0,
    }
    const line = createEventFormatter()(event as never)
    expect(line).not.toMatch(/\u001b\[2J|\u202e|\n\? approval/)
    expect(line).toContain('asks: Hi.')
  })
})

describe('an elicitation for the client of our MCP server', () => {
  const [form, open] = listQuestions(
    { state: 'WAITING_FOR_INPUT', pending: [question, { ...question, elicitation: page }], why: '' },
    1,
  )

  it('is the same form', () => {
    if (form === undefined) throw new Error('There is none.')
    const { params } = toInputRequest(form)
    expect(params).toMatchObject({ mode: 'form', requestedSchema: seat.schema })
    expect(params.message).toMatch(/airline.* asks: Which seat\?$/)
    const { callId, fingerprint } = question
    const expected = { type: 'toolOutput', callId, fingerprint }
    expect(readFormAnswer(form, accepted)).toEqual({ message: { ...expected, value: accepted } })
    expect(readFormAnswer(form, { action: 'decline' })).toEqual({
      message: { ...expected, value: { action: 'decline' } },
    })
    expect(readFormAnswer(form, { action: 'cancel' })).toBe('left')
    expect(readFormAnswer(form, { action: 'accept', content: {} })).toMatchObject({
      fault: /content\.seat/ as never,
    })
  })

  it('is a yes or no for a page', () => {
    if (open === undefined) throw new Error('There is none.')
    expect(toInputRequest(open).params.message).toContain('https://air.example/sign')
    expect(readFormAnswer(open, { action: 'accept', content: { confirm: true } })).toMatchObject({
      message: { value: { action: 'accept' } },
    })
    expect(readFormAnswer(open, { action: 'accept', content: { confirm: false } })).toMatchObject({
      message: { value: { action: 'decline' } },
    })
    expect(readFormAnswer(open, { action: 'accept', content: {} })).toHaveProperty('fault')
  })
})
