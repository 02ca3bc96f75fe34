import { expectArgument, listRule, objectRule } from '../../core/base/expect-argument.js'
import { formatLiteral, quoteText, toOneLine } from '../emit-jest.js'
import type { PathStep } from '../machine-path.js'
import { formatAssertion, formatRunnerImports, type TestRunner } from '../test-runner.js'
import type { PropertyStory } from './story.js'

/** How the test file of stories is written. */
export interface StoryTestsOptions {
  /** The name of the `describe` block. Default `stories that broke a property`. */
  title?: string
  /** The lines above the tests; they must bring `checkStory` and what the expressions below use into scope. */
  imports: readonly string[]
  /** An expression for the machine. Default `machine`. */
  machine?: string
  /** An expression for the object of properties, by their names. Default `properties`. */
  properties?: string
  /** An expression for the options of `checkProperties`. Default `options`. */
  options?: string
  /** The first line, as a comment. */
  header?: string
  /** The test runner, whose functions are imported. Default: the globals `describe`, `test` and `expect`. */
  runner?: TestRunner
}

/**
 * Writes a test file: one test a counterexample of `checkProperties`. A test fails as long as the machine can go on as
 * its story tells, and passes when that is mended.
 *
 * ```ts
 * const { report } = checkProperties(machine, { report: never('open') }, { alphabet })
 * generateStoryTests(report.counterexample ? [report.counterexample] : [], {
 *   imports: [`import { checkStory } from 'statewright/testing'`, `import { machine, properties, options } from './machine.js'`],
 * })
 * ```
 *
 * @throws {PathError} `not_json` for an event or input that JSON cannot hold
 */
export function generateStoryTests(stories: readonly PropertyStory[], options: StoryTestsOptions): string {
  expectArgument(
    'generateStoryTests(stories)',
    stories,
    listRule('a list of counterexamples of checkProperties(…)'),
  )
  expectArgument('generateStoryTests(stories, options)', options, objectRule([], 'an object of options'))
  const { title = 'stories that broke a property', machine = 'machine', properties = 'properties' } = options
  const { header = 'Generated from counterexamples of checkProperties.', options: space = 'options' } =
    options
  const { runner } = options
  const tests = stories.map((story, i) => {
    const call = `checkStory(${machine}, ${properties}[${quoteText(story.property)}], story, ${space})`
    return [
      `  // ${toOneLine(story.reason)}`,
      `  test(${quoteText(toOneLine(`${i + 1}. ${story.property}`))}, () => {`,
      '    const story = {',
      ...formatInput(story),
      ...formatEvents('steps', story.path.steps.slice(1), story),
      ...(story.loop ? formatEvents('loop', story.loop, story) : []),
      '    }',
      `    ${formatAssertion(runner, call, '{ holds: true, message: null }')}`,
      '  })',
    ].join('\n')
  })
  return [
    `// ${toOneLine(header)}`,
    ...formatRunnerImports(runner),
    ...options.imports,
    '',
    `describe(${quoteText(title)}, () => {`,
    tests.join('\n\n'),
    '})',
    '',
  ].join('\n')
}

function formatInput({ path }: PropertyStory): string[] {
  const input: unknown = path.steps[0]?.event.input
  return input === undefined ? [] : [`      input: ${formatLiteral(input, path, 'the input')},`]
}

function formatEvents(key: 'steps' | 'loop', steps: readonly PathStep[], { path }: PropertyStory): string[] {
  if (steps.length === 0) return [`      ${key}: [],`]
  return [
    `      ${key}: [`,
    ...steps.flatMap(({ event, label }) => [
      `        // ${toOneLine(label)}`,
      `        ${formatLiteral(event, path, `the event '${label}'`)},`,
    ]),
    '      ],',
  ]
}
