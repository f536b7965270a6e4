import js from '@eslint/js';
import { defineConfig } from 'eslint/config';
import tseslint from 'typescript-eslint';

/** Code that is handed packets, the time and randomness, and has none of its own. */
const sansIo = [
  'core/**/*.ts',
  'plugins/{mad,cm,xrc}/**/*.ts',
  'providers/{hca,shared-address}/**/*.ts',
  'providers/softroce/xrc-host/{messages,host-domain,rings}.ts',
  'samples/ulp/*/{wire,session}/**/*.ts',
];

const injected = 'This code is sans-IO: time, timers and randomness are injected (core/spi).';
const restrict = (...names) => names.map((name) => ({ name, message: injected }));
const restrictProperties = (object, ...properties) =>
  properties.map((property) => ({ object, property, message: injected }));

export default defineConfig(
  { ignores: ['dist/', 'build/', 'coverage/', 'node_modules/'] },
  { linterOptions: { reportUnusedDisableDirectives: 'error' } },
  {
    files: ['**/*.{js,mjs,cjs}'],
    extends: [js.configs.recommended],
    languageOptions: {
      globals: { console: 'readonly', module: 'writable', process: 'readonly', URL: 'readonly' },
    },
  },
  {
    files: ['**/*.ts'],
    extends: [js.configs.recommended, tseslint.configs.recommendedTypeChecked],
    languageOptions: {
      parserOptions: { projectService: true, tsconfigRootDir: import.meta.dirname },
    },
    rules: {
      eqeqeq: 'error',
      'no-restricted-syntax': [
        'error',
        { selector: 'ExportDefaultDeclaration', message: 'Export by name.' },
        { selector: 'TSEnumDeclaration', message: 'Use an `as const` object.' },
        { selector: 'PrivateIdentifier', message: 'Use `private`.' },
        {
          selector: 'ReturnStatement > UnaryExpression[operator=void]',
          message: 'It would hide a promise from the lint: a statement, and then `return`.',
        },
        {
          selector:
            ':matches(PropertyDefinition, MethodDefinition)[key.name=/^_/]:not([override=true]), ' +
            'TSParameterProperty > Identifier[name=/^_/]',
          message: 'Members have no leading underscore.',
        },
      ],
      '@typescript-eslint/consistent-type-imports': 'error',
      'no-duplicate-imports': 'error',
      '@typescript-eslint/explicit-module-boundary-types': 'error',
      '@typescript-eslint/no-explicit-any': 'error',
      '@typescript-eslint/no-floating-promises': 'error',
      '@typescript-eslint/no-unused-vars': ['error', { argsIgnorePattern: '^_' }],
      '@typescript-eslint/switch-exhaustiveness-check': [
        'error',
        { considerDefaultExhaustiveForUnions: true },
      ],
      // An async method without await is how a synchronous answer meets a Promise contract.
      '@typescript-eslint/require-await': 'off',
    },
  },
  {
    files: ['{core,plugins,providers,samples}/**/*.ts'],
    // The first program that people see: what fails in it ends it.
    ignores: ['samples/hello/*'],
    rules: {
      // Where its errors go is said: by a handler, or by `leaveUnhandled` of core/spi.
      '@typescript-eslint/no-floating-promises': ['error', { ignoreVoid: false }],
    },
  },
  {
    files: sansIo,
    rules: {
      'no-console': 'error',
      'no-restricted-globals': [
        'error',
        {
          globals: restrict(
            'Date',
            'performance',
            'crypto',
            'setTimeout',
            'setInterval',
            'setImmediate',
            'queueMicrotask',
          ),
          checkGlobalObject: true,
        },
      ],
      'no-restricted-properties': [
        'error',
        ...restrictProperties('Math', 'random'),
        ...restrictProperties('process', 'hrtime', 'nextTick', 'uptime'),
      ],
    },
  },
);
