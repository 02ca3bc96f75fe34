import type { AgentEvent, RunResult } from '../../src/index.js'
import { stage } from '../support/play.js'
import { call, text, tool } from '../support/tools.js'

/** Tries to change every part of a value and returns the changed paths. */
function tampered(value: unknown, at: string): string[] {
  if (typeof value !== 'object' || value === null) return []
  const holder = value as Record<string, unknown>
  return Object.keys(holder).flatMap((key) => {
    const before = holder[key]
    const inner = tampered(before, `${at}.${key}`)
    try {
      holder[key] = 'tampered'
      holder[key] = before
      return [...inner, `${at}.${key}`]
    } catch {
      return inner
    }
  })
}

test('no subscriber can change a run through the objects that it receives', async () => {
  const look = tool('look', (_, { progress }) => {
    progress({ seen: ['a'] })
    return 'seen'
  })
  const theatre = await stage([call('look', { at: 'it' }), text('Done.')], { tools: [look] })
  const play = theatre.run([{ role: 'user', content: [{ type: 'text', text: 'Go.' }] }])
  const changed: string[] = []
  play.run.events$.subscribe((event: AgentEvent) => {
    changed.push(...tampered(event, event.type))
  })
  const result: RunResult = await play.end(2)
  expect(changed).toEqual([])
  expect(tampered(result.messages, 'messages')).toEqual([])
  expect(tampered(result.usage, 'usage')).toEqual([])
})

test('options are copied, and the caller’s objects stay unchanged', async () => {
  const input = [{ role: 'user' as const, content: [{ type: 'text' as const, text: 'Go.' }] }]
  const progress = { seen: ['a'] }
  const look = tool('look', (_, execution) => execution.progress(progress))
  const theatre = await stage([call('look'), text('Done.')], { tools: [look] })
  const play = theatre.run(input)
  await play.end(2)
  expect(tampered(input, 'input')).not.toEqual([])
  expect(tampered(progress, 'progress')).toEqual(['progress.seen.0', 'progress.seen'])
})
