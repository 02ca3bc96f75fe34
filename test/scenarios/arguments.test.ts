import { defineTool, type Tool } from '../../src/index.js'
import { stage, textOf } from '../support/play.js'
import { calls, text } from '../support/tools.js'
import { sampledRows } from '../support/extent.js'

const input = {
  type: 'object' as const,
  properties: { to: { type: 'string' }, amount: { type: 'number', exclusiveMinimum: 0 } },
  required: ['to', 'amount'],
}

describe.each(sampledRows([true, false]))('a tool with a plain JSON Schema, stream %s', (stream) => {
  test('runs, asks people and calls clients only with valid arguments, and the model reads which are invalid', async () => {
    const ran: unknown[] = []
    const execute = (args: unknown) => void ran.push(args)
    const common = { description: 'Pays.', input }
    const tools = [
      defineTool({ ...common, name: 'pay', execute }),
      defineTool({ ...common, name: 'pay_asked', needsApproval: true, execute }),
      defineTool({ ...common, name: 'pay_there', client: true }),
    ] as Tool[]
    const wrong = tools.map(({ name }) => [name, { to: 'Ann', amount: -5 }] as const)
    const right = ['pay', { to: 'Ann', amount: 5 }] as const
    const theatre = await stage([calls([...wrong, right]), text('Done.')], { tools, stream })
    const play = theatre.run()
    expect((await play.end(2)).state).toBe('COMPLETED')
    expect(play.of('approval_requested')).toEqual([])
    expect(ran).toEqual([{ to: 'Ann', amount: 5 }])
    expect(play.of('tool_result').map(({ status }) => status)).toEqual([
      ...wrong.map(() => 'invalid_arguments'),
      'ok',
    ])
    for (const message of theatre.wire(1).slice(2, 5)) {
      expect(textOf(message)).toMatch(/do not match its schema:\n- amount: -5 is less than 0/)
    }
  })
})
