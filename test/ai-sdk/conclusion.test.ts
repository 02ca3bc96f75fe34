import { tool } from '../support/tools.js'
import { packages, playedBy } from './support.js'

const cases = Object.entries(packages).flatMap(([name, make]) =>
  [true, false].map((stream) => [name, stream, make] as const),
)

it.each(cases)(
  '%s keeps the tools of the last request, or leaves them out (stream: %s)',
  async (name, stream, make) => {
    const { result, stage } = await playedBy(
      make,
      [{ toolCalls: [{ name: 'work', arguments: {} }] }, { text: 'So far.' }],
      { tools: [tool('work')], stream, limits: { maxSteps: 1, onLimit: 'conclude' } },
    )
    expect(result).toMatchObject({ state: 'MAX_STEPS', output: 'So far.' })
    const [first, last] = stage.requests.map(({ sent }) => sent as Record<string, unknown>)
    const keeps = /^(openai v|openai responses|google)/.test(name)
    expect(last?.['tools']).toEqual(keeps ? first?.['tools'] : undefined)
    const none = name.startsWith('google') ? { functionCallingConfig: { mode: 'NONE' } } : 'none'
    const choice = last?.[name.startsWith('google') ? 'toolConfig' : 'tool_choice']
    expect(choice).toEqual(keeps ? none : undefined)
  },
)
