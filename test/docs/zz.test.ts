import { execFileSync } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { documents, root } from './snippets.js'
import { statementsOf } from './statements.js'
import { testsOf } from './test-names.js'
test('x', () => {
  const files = execFileSync('git', ['ls-files', 'test'], { cwd: root, encoding: 'utf8' })
    .split('\n')
    .filter((f) => /\.test\.ts$|describe-.*\.ts$/.test(f))
  writeFileSync(
    '/tmp/tests.txt',
    files
      .map(
        (f) =>
          `## ${f}\n` +
          testsOf(f)
            .map(({ name, isSkipped }) => (isSkipped ? 'SKIP ' : '') + name)
            .join('\n'),
      )
      .join('\n'),
  )
  writeFileSync(
    '/tmp/statements.txt',
    documents.map((d) => `## ${d}\n` + statementsOf(d).join('\n')).join('\n\n'),
  )
})
