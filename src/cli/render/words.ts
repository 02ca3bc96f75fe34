export * from '../../format/words.js'
