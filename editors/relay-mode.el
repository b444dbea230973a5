;;; relay-mode.el --- Relay -*- lexical-binding: t -*-
;; SPDX-License-Identifier: Apache-2.0
;;; Commentary:
;; Colours, comments and indentation of Relay; `compile' checks the file, `run-relay' opens the prompt.
;;; Code:
(require 'comint)

(defvar relay-mode-syntax-table
  (let ((table (make-syntax-table)))
    (modify-syntax-entry ?/ ". 124" table)
    (modify-syntax-entry ?* ". 23bn" table)
    (modify-syntax-entry ?\n ">" table)
    (modify-syntax-entry ?\" "\"" table)
    (modify-syntax-entry ?_ "_" table)
    table))

(defconst relay-font-lock
  (list
   (cons (regexp-opt '("let" "in" "if" "then" "else" "match" "fn" "def" "type" "when" "with" "where" "import" "operator" "extern" "derivative" "tangent" "no_derivative") 'symbols) 'font-lock-keyword-face)
   (cons (regexp-opt '("list" "sq" "Grad" "Ref" "Zero" "None" "it") 'symbols) 'font-lock-builtin-face)
   (cons (regexp-opt '("bool" "int8" "int16" "int32" "int64" "uint8" "uint16" "uint32" "uint64" "float16" "bfloat16" "float32" "float64" "String" "Tensor" "List" "Option" "ref") 'symbols) 'font-lock-type-face)
   (cons (regexp-opt '("True" "False" "nan" "inf") 'symbols) 'font-lock-constant-face)
   '("\\_<def[ \t]+@?\\([A-Za-z_0-9.]+\\)" 1 font-lock-function-name-face)
   '("[%@][A-Za-z_0-9.]+" . font-lock-variable-name-face)
   '("\\_<[A-Z][A-Za-z0-9_]*\\_>" . font-lock-type-face)))

(defun relay-indent-line ()
  "Indent by two columns for each bracket that is open."
  (interactive)
  (let* ((depth (save-excursion (beginning-of-line) (car (syntax-ppss))))
         (closes (save-excursion (back-to-indentation) (looking-at "[]})]")))
         (column (* 2 (max 0 (if closes (1- depth) depth)))))
    (if (<= (current-column) (current-indentation))
        (indent-line-to column)
      (save-excursion (indent-line-to column)))))

;;;###autoload
(define-derived-mode relay-mode prog-mode "Relay"
  "Programs of the language Relay."
  (setq-local comment-start "// ")
  (setq-local font-lock-defaults '(relay-font-lock))
  (setq-local indent-line-function #'relay-indent-line)
  (when buffer-file-name
    (setq-local compile-command
                (concat "relay check --diagnostics=short " (shell-quote-argument buffer-file-name)))))

;;;###autoload
(defun run-relay ()
  "Open the prompt of Relay."
  (interactive)
  (pop-to-buffer (make-comint "relay" "relay")))

;;;###autoload
(add-to-list 'auto-mode-alist '("\\.rly\\'" . relay-mode))

(provide 'relay-mode)
;;; relay-mode.el ends here
