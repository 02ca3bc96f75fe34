import { compile } from './compile.js'
import { longTest } from '../support/extent.js'

const program = `
import { AbstractChat, type ChatTransport, type UIDataTypes, type UIMessage } from 'ai'
import { createAgent, defineTool, openaiChat } from 'statewright'
import { chatTransport, type InferUIMessage, type InferUITools } from 'statewright/ui/client'
import { z } from 'zod'
const input = z.object({ to: z.string(), amount: z.number() })
const transfer = defineTool({ name: 'transfer', description: 'Moves money.', input, execute: () => 'moved' })
const agent = createAgent({ model: openaiChat({ model: 'm', apiKey: 'k' }), tools: [transfer] })
type ChatMessage = InferUIMessage<typeof agent>
type AiMessage = UIMessage<unknown, UIDataTypes, InferUITools<typeof agent>>
export const fits: ChatTransport<ChatMessage> = chatTransport<ChatMessage>({ protocol: 'v6' })
export type Init = ConstructorParameters<typeof AbstractChat<AiMessage>>[0]
export const amounts = (message: ChatMessage): number[] =>
  message.parts.flatMap((part) =>
    part.type === 'tool-transfer' && part.state === 'input-available' ? [part.input.amount] : [],
  )
`

/** The code that follows it, and its compiler errors. */
const slips: readonly (readonly [code: string, complaint: RegExp | null])[] = [
  ['', null],
  ['export const seven: ChatTransport<UIMessage> = chatTransport()', /TS2322/],
  [
    "export const text: Extract<ChatMessage['parts'][number], { type: 'tool-transfer'; state: 'input-available' }>['input']['amount'] = 'x'",
    /TS2322/,
  ],
  [
    "export const onToolCall: Init['onToolCall'] = ({ toolCall }) => { if (!toolCall.dynamic) { const text: string = toolCall.input.amount; console.log(text) } }",
    /TS2322/,
  ],
  [
    "export const onToolCall: Init['onToolCall'] = ({ toolCall }) => { if (!toolCall.dynamic) { const amount: number = toolCall.input.amount; console.log(amount) } }",
    null,
  ],
]

longTest('messages and transports fit the client of ai 6, and a transport of ai 7 does not', async () => {
  const errors = await compile(slips.map(([code]) => `${program}\n${code}`))
  for (const [at, [, complaint]] of slips.entries()) {
    const codes = errors[at]?.map(({ code }) => code)
    if (complaint) expect(codes).toEqual([expect.stringMatching(complaint)])
    else expect(codes).toEqual([])
  }
})
