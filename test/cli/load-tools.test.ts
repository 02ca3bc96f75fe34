import { loadTools } from '../../src/cli/load.js'
import { folder, removeFolders } from './support.js'

afterEach(removeFolders)

describe('a tools module', () => {
  test('provides its default export, resolved from the working folder', async () => {
    const cwd = await folder({ 'tools.mjs': 'export default [{ name: "a" }, { group: {}, args: {} }]' })
    expect(await loadTools('tools.mjs', cwd)).toEqual([{ name: 'a' }, { group: {}, args: {} }])
  })

  test.each([
    ['export const a = 1, b = 2', 'exports a, b but has no default export. Export a list of tools'],
    ['', 'exports nothing. Export a list'],
    ['export default { a: 1 }', 'has an object as its default export'],
    ['export default { name: "x", execute() {} }', 'has a single tool as its default export'],
    ['export default null', 'has null as its default export'],
    ['export default () => []', 'has a function as its default export'],
    ['throw new RangeError("boom")', 'cannot be loaded: RangeError: boom'],
    ['throw "words"', 'cannot be loaded: words'],
    ['export default [', 'cannot be loaded: SyntaxError'],
    ['import "no-such-package-anywhere"', 'no-such-package-anywhere'],
  ])('%j is refused with its type and the expected type', async (source, message) => {
    const cwd = await folder({ 'tools.mjs': source })
    const loading = loadTools('tools.mjs', cwd)
    await expect(loading).rejects.toThrow(message)
    await expect(loading).rejects.toMatchObject({ code: 'bad_tools', subject: '--tools' })
  })

  test('that is missing, or a folder, is reported', async () => {
    const cwd = await folder({})
    await expect(loadTools('nope.mjs', cwd)).rejects.toThrow("--tools: there is no file 'nope.mjs'.")
    await expect(loadTools('.', cwd)).rejects.toThrow("--tools: '.' is a folder")
  })
})
