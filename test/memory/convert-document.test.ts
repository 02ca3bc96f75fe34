import { resolvePeer } from '../../src/memory/attachments/convert-document.js'

it('an installed package has a file', () => {
  expect(resolvePeer('html-to-text', 'html-to-text', 'Reading HTML')).toMatch(/html-to-text/)
})

it('a missing package is an error with the command that installs it', () => {
  expect(() => resolvePeer('no-such-package/deep.mjs', 'no-such-package', 'Reading runes')).toThrow(
    expect.objectContaining({
      code: 'missing_package',
      message:
        'Reading runes needs the package no-such-package, which is not installed. Run: npm install no-such-package',
    }),
  )
})
