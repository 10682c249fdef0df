import js from "@eslint/js";
import globals from "globals";

export default [
  { ignores: ["**/.venv/", "**/build/", "docs/"] },
  js.configs.recommended,
  { rules: { "max-len": ["error", { code: 120 }] } },
  {
    files: ["contrastive_lab/components/**/*.js"],
    languageOptions: { globals: globals.browser },
    rules: {
      eqeqeq: ["error", "always", { null: "ignore" }],
      "no-shadow": "error",
      "no-var": "error",
      "prefer-const": ["error", { destructuring: "all" }],
    },
  },
  { files: ["tests/js/**/*.js", "*.config.js"], languageOptions: { globals: globals.node } },
];
